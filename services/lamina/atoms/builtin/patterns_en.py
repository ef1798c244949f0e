"""The words and forms that English rules go by; every pattern is bounded."""

from __future__ import annotations

import re

F = re.IGNORECASE
ADV = (
    r"(?:(?:also|just|still|really|actually|honestly|now|already|finally|recently|usually|always|mostly|"
    r"kinda|totally|only|currently|quite|never|absolutely|truly)\s+){0,2}"
)
CLAUSE = re.compile(
    r"(?:(?:,\s*|\s+)(?:and|but)\s+|;\s+)(?=(?:i|i'm|i've|we|we're|my|our|she|he|they|the)\b)|"
    r",\s+(?=(?:i|i'm|i've|my|we)\s)",
    F,
)
TAIL_QUESTION = re.compile(
    r",?\s+(?:so\s+|and\s+|but\s+)?(?:what|who|how|right|do|does|did|can|could|is|are|any|when|where|why|"
    r"which|should|would|will)\b[^,]{0,160}\?[\s\"')]{0,4}$",
    F,
)
QUESTION = re.compile(
    r"^(?:(?:ok|okay|so|and|but|hey|hm+|well|yeah|oh|um|lol|also)[,.]?\s+){0,3}(?:what|who|whom|whose|how|"
    r"why|where|when|which|do|does|did|can|could|is|are|was|were|"
    r"should|would|will|have you|has|am i|any idea|anyone|shall|may i|is there)\b(?!\s+(?:i|we)\s+(?:was|"
    r"were|get|got|live|work|write|use)\b)(?!\s+you\s+\w+[^?]{3,60},)",
    F,
)
HEDGE = re.compile(
    r"\b(?:i wonder|wondering|what if|if (?:i|we|he|she|they|it) (?:had|were|was|could|ever|won|did)|"
    r"i(?:'d| would) (?:have|rather not say)|would have|could have|"
    r"should (?:i|we)|might|maybe|perhaps|supposedly|imagine|pretend|let's say|suppose|not sure (?:if|"
    r"whether)|hypothetically|thinking (?:about|of|out)|"
    r"i guess|as if|in theory|someone (?:said|told)|i heard|rumou?r|in a parallel|one day i|wish)\b",
    F,
)
# "Never found here", "always comes late": of a thing, not to anybody.
DESCRIBES = (
    r"(?!(?!need|embed|feed|proceed|exceed|succeed)\w+ed\b|\w*[^su]s\b|"
    r"(?:found|seen|been|given|made|known|worn|heard|had|got|gone|done|an?|the)\b)"
)
STANDING = re.compile(
    r"\b(?:from (?:now|here) on|going forward|always|never|ever again|every time|each time|whenever|"
    r"by default|in (?:the )?future|at all times|no matter what|"
    r"don't (?:ever|you ever)|do not ever|as a rule|without exception|must(?:n't| not)?|no more)\b"
    r"|(?:^|[,;:.!]\s*|\b(?:please|and then|ok|okay|hey)\s+)stop \w+ing\b",
    F,
)
MOOD = (
    r"(?:(?:please|pls|plz|and|but|also|oh|ok|okay|btw|so|remember|note|quick (?:thing|note|one)|"
    r"one (?:more )?thing|heads up|important|rule|reminder|just|hey|again|"
    r"for the record|fyi|i want you to|i need you to|i'd like you to|you (?:should|must|have to|need to|"
    r"can)|make sure (?:you |to )?|be sure to|try to|"
    r"let's|we)(?:\s*[:,-]\s*|\s+)){0,4}"
)
VERB = (
    r"(?:use|write|answer|reply|respond|give|keep|ask|call|put|make|run|show|tell|add|commit|push|send|"
    r"format|speak|talk|include|skip|avoid|touch|suggest|check|"
    r"start|end|name|edit|merge|deploy|delete|remove|mention|explain|return|prefer|provide|translate|"
    r"convert|list|sign|address|refer|say|do|be|test|document|log|"
    r"quote|cite|let|create|open|rebase|squash|leave|change|round|print|install|hardcode|assume|forget|"
    r"remind|wrap|indent|follow|stick|modify|stay|pin|hide|store|"
    r"schedule|book|recommend|order|spell|read|import|set|mix|bother|generate|output|wait|confirm|"
    r"double-check|summari[sz]e)"
)
IMPERATIVE = re.compile(
    rf"^{MOOD}(?:(?:always|never|only|don't(?: ever)?|do not(?: ever)?|no longer|stop)\s+)?{VERB}\b", F
)
# Behind a subject "always" tells of it: "the sea always gives me strength".
IMPERATIVE_WITHIN = re.compile(
    rf"(?:\b(?:please|from now on)|(?:[,;:.!–—]|\b(?:and|but|so|then|to|should|must|you))\s*\b(?:always|never|don't ever)),?\s+"
    rf"(?:please\s+|only\s+)?{VERB}\b",
    F,
)
LEAD_NEVER = re.compile(
    rf"^{MOOD}(?:[\w\s]{{0,40}},\s*)?(?:never|don't|do not|stop|avoid|no\b)|"
    rf"\bfrom now on,?\s+(?:please\s+)?(?:never|don't|do not|stop|avoid|no)\b|\bnever\b|\bdon't ever\b|"
    rf"\bstop \w+ing\b|\bmust(?:n't| not)\b",
    F,
)
WHEN = re.compile(
    r"^(?:and |but |also |btw |ok |please |so )?(?:when(?:ever)? (?:you|we|i)|if (?:you|i|we)|"
    r"for (?:\w+ ){0,2}(?:messages?|emails?|reviews?|commits?|posts?|reports?|slides?|drafts?|tests?|"
    r"recipes?|meetings?|docs|"
    r"summaries|translations?|titles?|branches|tables?|charts?|scripts?|changelogs?|logs?)\b|"
    r"in (?:code )?(?:reviews|emails|commit messages|meetings|pull requests|prs)\b|(?:during|while|before|"
    r"after) )"
    r"|\bwhen (?:you|we|i|writing|reviewing)\b|\bin (?:emails|commit messages|code reviews|reviews|"
    r"pr descriptions)\b",
    F,
)
PROJECT = re.compile(
    r"\bin this (?:repo(?:sitory)?|project|code ?base|service|package|app)\b|\b(?:repo|codebase|"
    r"monorepo)\b|`[^`]{1,60}[/.][^`]{0,60}`|\b(?:migrations?|test suite|main branch|master|"
    r"force[- ]push\w*|linter|lint|endpoints?|schema|staging|prod(?:uction)?|secrets?|generated|fixtures?|"
    r"\.env|config(?:uration)?|modules?|packages?|tables?|"
    r"handlers?|components?|api|database|db|in here|type hints|types|mypy|pytest|unit tests)\b|\b(?:on|to) main\b",
    F,
)
ITSELF = re.compile(
    r"\b(?:answers?|reply|replies|respond|responses?|explain|explanations?|speak|talk|tone|emojis?|call me|address|ask|asking|"
    r"tell|me|secrets?|passwords?|credentials?|api keys?|tokens?|summar\w+|concise|brief|verbose|apologi[sz]e|polite|"
    r"plain text|bullets?|(?:in|speak|use) (?:english|korean|japanese|chinese|german|french|spanish)|all (?:my )?projects|everywhere)\b",
    F,
)
"""What a rule is about that goes wherever the agent goes."""
BARE_RULE = re.compile(
    rf"^{MOOD}(?:from (?:now|here) on,?\s+(?:please\s+)?(?:\w+\s+){{0,2}}\w+|(?:always|never|"
    rf"don't ever)\s+{DESCRIBES}\w+|(?:don't|do not)\s+(?:use|add|touch|commit|write|call|suggest|include|mention|"
    rf"push|edit|rename|format|apologi[sz]e|assume|hardcode|mock|import|log|store|merge|deploy|install)\b|"
    rf"no\s+\w+(?:\s\w+){{0,4}}(?:,?\s+(?:ever|please|in \w+))|only\s+(?:use|write|answer|reply|suggest|"
    rf"commit)\b)",
    F,
)
PLAIN_RULE = re.compile(
    r"^(?:\w+ ){0,3}in this (?:repo(?:sitory)?|project|code ?base),? we (?:use|don't use|never|always|only)\b", F
)

_PLACE_NAME = r"((?:[Tt]he\s+)?[A-Z][\w'-]+(?:[ ,]+[A-Z][\w'-]+){0,2})"
HOME = re.compile(
    rf"(?i:\b(?:i|we)(?:'m| am|'re| are|'ve| have)?\s+{ADV}(?:moved|relocated|moving|living|live|based|settled|"
    r"resettled|reside)\b[^,.]{0,12}?\b(?:to|in|at|back to)\s+)" + _PLACE_NAME
)
EMPLOYER = re.compile(
    rf"(?i:\b(?:i|we)(?:'m| am)?\s+{ADV}(?:work(?:ing)?|started|start|joined|employed|hired|got a job|took a job)\s+"
    rf"(?:at |for |with |by |as \w+ at )?)(?:{_PLACE_NAME}|(?i:the\s+)((?:\w+\s+){{0,2}}\w+))"
)
NAME = re.compile(
    r"(?i:\b(?:my name(?:'s| is)|call me|i(?:'m| am) called|everyone calls me|i go by)\s+)([A-Z][\w'-]+)"
)
BIRTHDAY = re.compile(
    r"\bmy birthday(?:'s| is)\s+(?:on\s+)?([\w ,]{3,30})|\bi was born (?:on|in)\s+([\w ,]{3,30})", F
)
JOB = re.compile(
    r"\bi(?:'m| am)\s+"
    + ADV
    + r"an?\s+((?:[\w-]+\s+){0,3}(?:\w+(?:er|or|ist|ian|ant|ent|man|yst)|nurse|teacher|chef|cook|student|"
    r"pilot|freelancer|dev|vet|judge|coach|clerk|architect|postdoc|paralegal|dba|sre))\b",
    F,
)
ALLERGY = re.compile(r"\b(?:allergic to|intolerant to|allergy to)\s+(?:the\s+)?([\w-]+(?:\s[\w-]+)?)", F)
PREFERENCE = re.compile(
    r"\bi(?:'m|'ve| am| do| have| just)?\s*"
    + ADV
    + r"(?:(?:don't|do not|can't|cannot|couldn't|didn't|no longer|used to)\s+(?:\w+\s+)?)?"
    r"(?:like|love|hate|prefer|enjoy|adore|detest|dislike|despise|stand|loathe|into|a fan of|"
    r"obsessed with|a huge fan of|favou?r)\s+"
    r"(?!(?:those|these|that|this|it|them|your|the (?:idea|suggestions?|template|concept|tips|sound|way|look) ?)\b)(?:the\s+|my\s+|to\s+)?([\w'-]+(?:\s[\w'-]+)?)",
    F,
)
# "She loves it!", "I think I've got it": of something that only what went before can tell.
EMPTY = re.compile(
    r"^(?:(?:and|so|but|oh|well),? )?(?:i think )?(?:i|we|she|he|they)(?:'ve|'d|'m| have| has)?(?: \w+){0,2} "
    r"(?:it|that|this|them|so|admit|say|agree|understand|guess|suppose)[.! ]*$",
    F,
)
REMARK = re.compile(r"^(?:please )?(?:keep in mind|note|remember|be aware|bear in mind) that (?!you\b)", F)
FAVOURITE = re.compile(r"\bmy (?:all[- ]time )?favou?rite\s+([\w-]+)(?:\s\w+)?\s+(?:is|are|was|has)\b", F)
FAVOURITE_IS = re.compile(
    r"\bmy (?:all[- ]time )?favou?rite\s+(?P<what>[\w-]+(?:\s[\w-]+)?)\s+(?:is|are)\s+"
    r"(?:now |still |probably |definitely |actually |the |a )*(?P<one>[^.,;!?]{2,60})",
    F,
)
PERSONA = re.compile(
    r"\b(?:i|we)(?:'m| am|'re| are)\s+"
    + ADV
    + r"(?:an?\s+(?!bit\b|little\b|tad\b)|vegan|vegetarian|colou?r ?blind|deaf|left-handed|right-handed|"
    r"from\s|married|divorced|single\b|pregnant|diabetic|celiac|coeliac|dyslexic|retired|"
    r"\d{1,2}(?: years old)?\b(?=[ ,.]|$)|fluent|learning|studying|training|raising|originally|bilingual|"
    r"in my|on a \w+ diet|scared of|afraid of|terrified|lactose)"
    r"|\b(?:i|we)\s+"
    + ADV
    + r"(?:(?:don't|do not|can't|cannot|no longer|never)\s+)?(?:have|own|keep|speak|play|run|swim|drink|"
    r"eat|study|teach|commute|wear|sleep|wake|collect|volunteer|practi[sc]e|"
    r"work|live|drive|ride|cook|paint|sing|smoke|take|go)\b(?!\s+(?:to|a|no|any)?\s*(?:look|bit|idea|clue|"
    r"question|point|sense|wait|see|doubt|problem|issue|feeling|ahead|with that|over))"
    r"|\bi've (?:got|had|been)\b(?!\s+(?:a (?:question|feeling|hunch|look)|thinking|trying|meaning|"
    r"looking|wondering|no ))"
    r"|\bmy (?:\w+[ -]){0,2}(?:wife|husband|partner|son|daughter|kids?|sister|brother|mom|mum|dad|mother|"
    r"father|parents?|dog|cat|boss|manager|team|girlfriend|boyfriend|roommate|"
    r"flatmate|grandma|grandpa|gran|aunt|uncle|cousin|twins?|baby|pet|name|birthday|job|screen reader|"
    r"blood type|timezone|time zone|hometown|major|native language|pronouns|shift|budget|keyboard|laptop|"
    r"car|commute|knees?|back|"
    r"phone|address|email|landlord|degree|eyesight|doctor)\b(?:'s|\s+[\w-]+){0,4}?\s*(?:is|are|'s|has|"
    r"have|lives?|works?|goes|go|loves?|hates?|doesn't|can't|plays?|trips?|named|called|runs?|studies|"
    r"teaches|speaks|needs?|likes?)\b"
    r"|\b(?:she|he)\s+(?:doesn't|does not|can't|only|never|always|loves?|hates?|likes?|is allergic|works|"
    r"lives|speaks|plays|teaches|studies|is an?|'s an?)\b",
    F,
)
LIFE = (
    r"moved|started|quit|left|joined|got|bought|sold|adopted|married|graduated|passed|failed|finished|ran|"
    r"won|lost|visited|went|flew|met|broke|signed|booked|had|gave|took|made|began|became|"
    r"signed up|enrolled|attended|returned|came back|completed|celebrated|retired|resigned|received|saw|"
    r"hurt|sprained|tore|climbed|hiked|painted|wrote|published|performed|planted|hosted|built|"
    r"learned|learnt|stopped|dropped|switched|cut|renewed|applied|interviewed|accepted|proposed|"
    r"organi[sz]ed|registered|donated|volunteered|tried|baked|cooked|camped|traveled|travelled|stayed|"
    r"spent|"
    r"rented|drove|swam|opened|launched|found|ordered|turned|defended|handed|submitted|picked up|broke up|"
    r"ended|split|told|did|read|watched|played|fell|cancelled|canceled|was|were|caught|replaced"
)
EPISODIC = re.compile(
    rf"\b(?:(?:i|we)(?:'ve| have)?|[A-Z]\w+ and (?:i|me)|my (?:\w+ ){{1,2}})\s*{ADV}(?:{LIFE})\b"
    r"|\b(?:i|we)(?:'m|'re| am| are)\s+(?:also |finally |still |both )?(?:getting|going|flying|moving|"
    r"starting|visiting|having|travel+ing|meeting|seeing|leaving|taking|hosting|running|attending|signing|"
    r"presenting|defending|picking)\b"
    r"|\bmy (?:\w+ ){1,3}(?:is|are)\s+(?:visiting|coming|getting|moving|arriving|turning|graduating|"
    r"starting|due|on|in|next|this)\b"
    r"|\bi(?:'ve| have)(?: got)? an? (?:[\w-]+ ){0,3}(?:appointment|interview|exam|flight|meeting|surgery|"
    r"wedding|deadline|recital|race|checkup|check-up|date|trip|reservation|class|concert|game|match|party|"
    r"call|dentist)\b",
    F,
)
DATED = re.compile(
    r"\b(?:yesterday|today|tomorrow|tonight|this morning|last (?:night|week|month|year|mon|tue|wed|thu|"
    r"fri|sat|sun|summer|winter|spring|fall|autumn)\w*|next \w+|(?:\d+|two|three|four|five|six|a few|"
    r"a couple of?|a|an) "
    r"(?:days?|weeks?|months?|years?) (?:ago|from now|back)|in (?:january|february|march|april|may|june|"
    r"july|august|september|october|november|december|\d{4})|"
    r"on (?:the )?(?:\d|mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*|"
    r"this (?:week|weekend|month|year|mon|tue|wed|thu|fri|sat|sun)\w*|since \w+|in \w+ (?:days|weeks|"
    r"months|years))\b|\d{4}-\d\d-\d\d",
    F,
)
PAST = re.compile(
    r"\b(?:was|were|had|did|went|\w{2,}ed|got|left|quit|ran|took|made|bought|sold|met|lost|won|gave|came|"
    r"began|broke|flew|started|ago|last|yesterday|been)\b",
    F,
)
AHEAD = re.compile(
    r"\b(?:booked|scheduled|planned|reserved|signed up|registered|got tickets|ordered|due|"
    r"set) (?:\w+ ){0,6}(?:for|on|in|by)\b|\b(?:will|going to|gonna|upcoming|coming up|next)\b",
    F,
)
COMMAND = re.compile(rf"^{MOOD}(?:don't |do not )?{VERB}\b(?!\s+(?:to|is|are|was|were)\b)", F)

CAUSE = re.compile(
    r"\b(?:the (?:\w+ ){0,3}(?:bug|issue|problem|culprit|cause|failure|crash|leak|error|regression|"
    r"root cause|flake|reason) (?:was|is|came|turned out)|root cause|turned out (?:to be|that)|"
    r"fixed (?:in|by|it by)|caused by|was caused|"
    r"found it:|the fix (?:was|is)|due to|(?:was|were|failed|broke|crashed|hung|leaked|slow|missing|"
    r"dropped|timed out|went) [^.]{0,60}\bbecause\b|race condition|regressed|instead of|the reason|"
    r"traced (?:it|this|that)? ?(?:back )?to|comes? from|came from|because (?:the|of|it|we|our|an?)\b|"
    r"solved it|culprit)\b",
    F,
)
DECIDED = re.compile(
    r"\b(?:going with|went with|opted for|(?:i'll|we'll) (?:use|go with|keep|stick with|"
    r"stay on) [^.]{3,80}(?:\binstead of\b|\brather than\b|\bbecause\b|\bsince\b|\bover\b)|agreed (?:to|"
    r"on|that)|chose|decided|decision)\b|\b(?:(?:i|we)(?:'ve| have)? (?:decided|chose|picked|settled on|"
    r"agreed|dropped|standardi[sz]ed|went with|are going with|opted|replaced|migrated|switched)|decision:|"
    r"we(?:'re| are) going with|let's go with)\b",
    F,
)
WORKS = re.compile(
    r"`[^`]{2,120}`[^.]{0,60}\b(?:works?|worked|does the trick|passes|succeeds|fixed it|did it)\b|"
    r"\b(?:works?|worked) with `[^`]{2,120}`|\bto (?:\w+ ){1,6}[^,]{0,60},?\s*(?:run|use|call|"
    r"execute)\s+`|\b(?:run|use|call|start it with|reproduce with|build with|do that with|it with|"
    r"that with|via|by running|with)\s+`[^`]{2,120}`[^.]{0,20}\b(?:to|and|first|then|before|after|from|"
    r"in)\b|`[^`]{2,120}` (?:re?\w+s|starts?|builds?|runs?|gives?|brings?|seeds?|shows?|clears?|fixes|"
    r"applies|does|is (?:the way|how|enough))\b",
    F,
)
MADE = re.compile(
    r"(?:\b(?:i|we)(?:'ve| have)? (?:\w+ )?|^(?:(?:done|ok|okay|all set|finished|both|now|"
    r"good)[.:,;!]?\s+)?|\b(?:is|are|was|were|been|and)(?: now)? )(?:renamed|split|rewrote|rewritten|"
    r"written|refactored|bumped|pinned|removed|merged|tagged|released|deployed|added|wrote|written|"
    r"created|put|saved|generated|exported|opened|pushed|drafted|extracted|moved|documented|published|"
    r"uploaded|built|committed|stored|tagged|set up)\b[^.]{0,140}(?:`[^`]{2,100}`|https?://|#\d+|"
    r"\b[\w-]+\.(?:py|ts|md|go|rs|sh|sql|ya?ml|json|toml)\b|\bPR\b)",
    F,
)
HELD = re.compile(
    r"\b(?:the|a|an|your|our|its|this|pr|branch|patch|script|report|notes?|docs?|fix|changes?|"
    r"draft) [^.]{0,60}?\b(?:is|are|lives?|sits?|went|go(?:es)?) (?:now )?(?:in|at|under|on|into|"
    r"up)(?: branch| the branch| pr)?\s+(?:`[^`]{2,100}`|https?://\S+|#\d+|[\w.-]{1,40}/[\w./-]{1,80})|"
    r"\b(?:pr|pull request|mr) #?\d+\b",
    F,
)
PLACE = re.compile(
    r"\b(?:lives?|is|are|sits?|documented|stored|kept|described|found|reachable|hosted|"
    r"available) (?:\w+ )?(?:in|at|under|on)\s+(?:`[^`]{2,100}`|https?://\S+|[\w.-]{1,40}/[\w./-]{1,80})",
    F,
)
STACK = re.compile(
    r"\b(?:[Ww]e(?:'re| are)? (?:still |now )?(?:on|use|using|run|running|deploy|target|support|have)|"
    r"(?:it|this|the \w+(?: \w+)?|our \w+(?: \w+)?|prod|production|staging|ci|[\w-]+)(?:'s| is| are|"
    r" runs?| uses?| moved| listens?| changed| requires?| needs?| only supports?| supports?| expires?|"
    r" times? out| holds?| has) "
    r"(?:(?:now|still|only|on|to|at|over|running|pinned|at most|limited|capped|back|about|"
    r"up)\s+){0,3})[^.]{0,60}?(?:\d|[A-Z][\w.+-]{2,}|`)",
)
TECHNICAL = re.compile(
    r"`[^`]{1,80}`|\b[\w-]+/[\w./-]+|\b\w+\.(?:py|ts|js|go|rs|md|sql|ya?ml|json|toml|sh)\b|"
    r"\bv?\d+(?:\.\d+)+\b|\b\d+\s?(?:ms|s|sec\w*|min\w*|hours?|GB|MB|KB|%|rows?|users?|requests?|"
    r"connections?|workers?|threads?|retries|replicas?|shards?)\b|\b[A-Z]{2,6}\b|\b[A-Z][a-z]+[A-Z]\w+\b"
)
DECLARES = re.compile(
    r"\b(?:is|are|was|were|has|have|had|runs?|uses?|lives?|moved|needs?|requires?|breaks?|broke|fails?|"
    r"failed|crash(?:es|ed)|only|must|can't|cannot|doesn't|does not|won't|returns?|expires?|happens?|"
    r"depends?|means|comes?|goes|went|sits?|caps?|limits?|supports?|leaks?|blocks?|holds?|'s|'re)\b",
    F,
)
OWNER = re.compile(
    r"\b[A-Z]\w+ (?:took over|owns|maintains|is (?:responsible|in charge|the owner|on call)|reviews|leads|"
    r"handles|joined|left)\b|\b(?:went|is|was|were|are) (?:down|broken|offline|deprecated|blocked)\b"
)
TASK = re.compile(
    r"\b(?:has|have|had|needs?|still) to (?:go out|be (?:\w+)|ship|land|write|finish|fix|migrate|get)|"
    r"\b(?:i|we) (?:still )?(?:need|have) to\b|\bdue (?:on |by )?\w+|\bdeadline\b|\b(?:todo|to-do)\b|"
    r"\bstill (?:missing|open|left|to do)\b|\b(?:by|before|until) (?:friday|monday|tuesday|wednesday|"
    r"thursday|tomorrow|end of|next|the \d|\w+ \d{1,2}\b)|\bblocked (?:on|by)\b|\bremaining\b",
    F,
)


SOMEONE = re.compile(r"\b(?:i|we|my|our|she|he|us|me|mine)\b|\b[A-Z]\w+ (?:and i|is|has|got|will)\b", F)
TOLD = re.compile(
    r"^(?:(?:and|but|so|also|btw|oh|yeah|well|ok|haha|lol|anyway|fun fact|actually|honestly|update|"
    r"news)[,:.!]?\s+){0,3}(?:i|we|my (?:\w+ ){1,3}?|our (?:\w+ ){1,3}?)\s*"
    + ADV
    + r"(?:\w{3,}ed|got|went|made|had|took|came|gave|found|met|bought|began|became|ran|won|lost|left|kept|"
    r"grew|speak|work|live|have|own|need|want to|plan to|play|use|study|can't|cannot|never|only|"
    r"has|is|are|was|'m|'ve)\b(?! (?:to (?:know|ask|say)|sure|sorry|glad|happy|curious|confused|back|here|"
    r"fine|good|ok|okay|done|ready|not sure|just|a (?:question|look)))",
    F,
)
DISLIKED = re.compile(r"\b(?:don't|can't|hate|dislike|no longer|detest|despise|do not|loathe)\b", F)
AT = re.compile(r"\b(?:at|for|joined|with)\s")
