"""Korean: what a sentence is about, by its ending, its particles and its verb."""

from __future__ import annotations

import re

from lamina.atoms.builtin.judgement import Judgement, Speaker, favourite, instruction, slotted

_QUESTION = re.compile(
    r"(?:나요|가요|까요|ㄹ까|을까|니|냐|는지|던가|려나|ㄴ가|은가|는가|을래|ㄹ래|지\?|죠\?|거야\?)[?？.!~ㅋㅎㅠ\s]{0,12}$|"
    r"(?:뭐|뭔|무엇|어디|언제|누구|누가|왜|어떻게|어떤|얼마|몇)\S{0,8}[^.!]{0,30}(?:요|지|임|야|해|까|나|니|음)\??[?~ㅋㅎㅠ\s]{0,10}$"
)
_HEDGE = re.compile(
    r"만약|만일|라면\b|했다면|[으]?면 좋겠|텐데|을까 싶|ㄹ까 싶|어떨까|일지도|할지도|을지도|수도 있|수도$|것 같기도|싶기도|고민 중|고민 ?이|듯$|듯[.~\s]|"
    r"수고 ?(?:많|하셨)|고생 ?(?:많|하셨)|안녕하|^\S{0,3}\s?원인을 찾았\S{0,4}$|인 것 같|망했을|되면 좋|어떻게 될"
)
_STANDING = re.compile(
    r"이제부터|앞으로|항상|언제나|반드시|꼭 |매번|절대|늘 |무조건|지금부터|다음부터|이후로|평소|기본적으로|기본으로|원칙"
)
_ASK = re.compile(
    r"(?:주세요|줘요?|주십시오|하세요|하십시오|해라|할 것|해 ?줘|마세요|마십시오|지 ?마|말아 ?\S{1,4}|말 것|말고|금지|쓰세요|써요?|합시다|하자|으세요|세요|줄래|부탁\S{0,6}|바랍니다|바래|돼|됩니다|안 ?돼요?|안 ?됩니다|해야 \S{1,4})"
)
_NEVER = re.compile(r"지 ?(?:마|말)|말 것|금지|안 ?[돼됩]|하지 않")
_WHEN = re.compile(
    r"[할쓸볼낼짤때줄들올릴만]\s?때|[을를]\s?때|때는|때엔|때마다|시에는|하면서|하기 전|전에는?|후에는|메시지는|메일은|이메일은|리뷰는|문서는|보고서는|제목은|커밋은|PR은|요약은|번역은"
)
_PROJECT = re.compile(
    r"저장소|프로젝트|레포|리포|코드|브랜치|모듈|패키지|상태 관리|테스트|배포|마이그레이션|스키마|의존성|라이브러리|운영|DB|API|`"
)
_ITSELF = re.compile(
    r"답변|대답|응답|설명|말투|존댓말|반말|이모지|불러|호칭|요약|짧게|간결|물어|확인받|허락|저한테|나한테|저에게|나에게|비밀|비밀번호|토큰|인증 ?정보|모든 프로젝트"
)
_MINE = re.compile(
    r"(?:^|[\s,])(?:저|나|난|전|제|내|제가|내가|우리|저희|저는|나는|저도|나도|울|우린|저흰)(?:\s|[는은도가의]|$)"
)
_KIN = re.compile(
    r"누나|언니|오빠|형|동생|엄마|아빠|어머니|아버지|부모님|남편|아내|와이프|딸|아들|남친|여친|남자친구|여자친구|강아지|고양이|할머니|할아버지|사촌|조카|룸메|애인|아이"
)
_PERSONA = re.compile(
    r"(?:이름은|이름이|라고 불러|알레르기|취미는|취미가|직업은|생일은|생일이|고향은|전공은|혈액형|좋아하|좋아해|좋아합|싫어하|싫어해|싫어합|싫더라|사랑해|못 ?먹|안 ?먹|못 ?마|안 ?마|즐겨|선호|"
    r"제일 |가장 좋|키우고|키워|키웁|살고 있|에 살|삽니다|살아요|거주|다니고|다녀|다닙|일하고|일해|일합|근무|가르치|가르칩|프리랜서|개발자|교사|간호사|의사|디자이너|학생|작가|요리사|번역가|회사원|기자|변호사|"
    r"채식|비건|당뇨|색맹|왼손잡이|할 줄 (?:알|압|몰|모)|매주|매일|마다|주로|보통|배우고|배워|공부하고|앓고|있어서 |혼자 살|결혼했|둘이|(?:마리|명) (?:있|키)|(?:은|는|이|가) (?:아파|안 좋|약해)|끊었|바뀌었)"
)
_PERFECT = "".join(
    chr(code) for code in range(0xAC00, 0xD7A4) if (code - 0xAC00) % 28 == 20 and chr(code) not in "있겠"
)
"""Every syllable that ends in the tense mark, but those of being there and of what will be."""
_PAST = re.compile(
    rf"[{_PERFECT}](?:[어다지네음는던고으더죠거대]|습)|[{_PERFECT}][.!~ㅋㅎㅠ\s]*$|[한된간온난산낸본]\s"
)
_DATED = re.compile(
    r"어제|오늘|내일|모레|그저께|그제|엊그제|글피|지난|저번|이번|다음\s?(?:주|달|주말|해|학기)|\d{1,2}월|\d{1,2}일|작년|올해|내년|재작년|\d{4}년|\d+\s?(?:일|주|달|개월|년|시간)\s?(?:전|후|뒤)|"
    r"[월화수목금토일]요일|주말|며칠|[봄가을]에|여름에|겨울에|아침에|저녁에|[한두세네]\s?(?:달|주)\s?(?:전|뒤|후)|보름|새벽"
)
_PLAN = re.compile(
    r"예약|일정|약속|있어요?[.!~]?|있습니다|있음|잡혔|잡았|가기로|하기로|할 거|갈 거|예정|할 예정|이사|여행|결혼식|시험|면접|출국|출장|연수|수술|발표|콘서트|모임|만나"
)
_CAUSE = re.compile(
    r"버그(?:였|는|가|입니다|의)|원인은|원인이|원인을|때문에|때문이|문제였|문제는|없어서|않아서|어서[^.]{0,60}(?:않았|실패|누락|죽|깨|멈)|(?:돼|되어|되)\s?있(?:어서?|었)|누락되|수정했|수정하|고쳤|고침|해결했|해결됐|해결되|해결함|"
    r"잡았습니다|바로잡|잘못|몰려|지원하지|충돌"
)
_DECIDED = re.compile(
    r"기로 (?:했|함|결정|정)|정했|결정했|결정됐|선택했|채택|대신 [^.]{1,60}(?:기로|씁|써|쓰|사용)|으?로 (?:갈게|가겠|가기로|통일|교체|전환|바꿨|바꾸|바뀌)|접고|버리고|도입"
)
_WORKS = re.compile(
    r"`[^`]{2,120}`[^.]{0,60}(?:동작|작동|됩니다|돼요?|성공|해결|통과|실행하면|하면 [^.]{0,20}(?:됩|돼|나옵|정상)|면 됩|면 돼|로 실행|로 빌드|로 시작|로 띄|로 재현|로 생성)"
)
_MADE = re.compile(
    r"(?:`[^`]{2,100}`|https?://\S+|[\w.-]+/[\w./-]+|\b[\w-]+\.(?:py|ts|md|go|rs|sh|sql|ya?ml|json|toml|java|kt|dart)|\bPR\b|#\d+)[^.]{0,80}"
    r"(?:추가|작성|만들|생성|변경|저장|올렸|올려\s?(?:뒀|놨)|정리|적어|기록|넣었|옮겼|분리|배포|열었|커밋|교체|수정해 ?뒀|등록|있어요?|있습니다|있음|뒀|놨|두었)"
)
_TASK = re.compile(
    r"까지|해야 (?:해|돼|함|합|됩|되)|야 (?:해|돼|함|합니다|됩니다|돼요|해요)|남았|마감|기한|오픈은|출시는|미뤘|미뤄|연기|할 일|TODO",
    re.IGNORECASE,
)
_FACT = re.compile(
    r"\d|[A-Z][\w.+-]{1,}|`|버전|포트|서버|담당|맡|스택|환경|자바|스프링|파이썬|노드|리액트|플러터|도커|쿠버|데이터베이스|디비|리눅스|윈도우|안드로이드|클라우드|라이브러리|프레임워크"
)
_DECLARES = re.compile(
    r"(?:입니다|이야|예요|이에요|에요|임|써요?|씁니다|쓰고|사용|맡|바뀌|올렸|옮겼|내렸|되어 ?있|돼 ?있|있어|있습|돼요?|됩니다|된다|해요?|합니다|한다|음|함|다|죽었|터졌|느려|걸려|걸립|대요|래요|거든요?|이고|이라|인데)[.!~ㅋㅎㅠ\s)]*$|"
    r"(?:써|쓰|사용|이고|인데)[,\s]"
)
_SMALL = re.compile(
    r"^(?:네|넵|예|응|ㅇㅇ|ㅇㅋ|아니|아뇨|오|와|헐|앗|굿|감사|고마|ㄱㅅ|안녕|알겠|좋아요|좋네요|그래|그렇|맞아|잘했|축하|수고|미안|죄송|ㅎㅇ|확인했|이해함?)\S{0,8}[\s.!~ㅋㅎㅠ,]{0,6}\S{0,8}[\s.!~ㅋㅎㅠ]*$"
)
_COMMAND = re.compile(
    r"(?:주세요|줘|줘요|해봐|봐|봐줘|돌려|열어|보여|주라|줄래|하자|고쳐|지워|해라|부탁해요?|부탁드려요|부탁드립니다)[.!~ㅋㅎㅠ\s]*$"
)
_HOME = re.compile(
    r"(?:^|\s)([가-힣A-Za-z]{2,8}?)(?:으로|로)\s?(?:또 )?이사|(?:^|\s)([가-힣A-Za-z]{2,8}?)에\s?(?:살|거주|자리)"
)
_NAME = re.compile(r"이름은\s?([가-힣A-Za-z]{2,12}?)(?:이고|이에요|예요|입니다|이야|야|라고|이라고|$)")
_EMPLOYER = re.compile(
    r"(?:^|\s)([가-힣A-Za-z0-9]{2,15}?)(?:에|에서)?\s?(?:다녀|다니|다닙|일해|일하|입사|근무|출근|취직)"
)
_ALLERGY = re.compile(r"([가-힣]{1,8})\s?알레르기")
# Somebody or something has this: "the place of the fair is Busan".
_ATTRIBUTE = re.compile(
    r"^(?!이것|그것|문제|누구)[^,.?]{2,24}?(?:의)? ?(?:기간|시간|날짜|장소|위치|주소|규모|주제|이메일(?: 주소)?|전화번호|생일|이름|직장|회사|고향|"
    r"학력|직업|키|나이|가격|예산|마감(?:일)?)(?:은|는|이|가) [^?]{1,60}(?:이야|야|예요|이에요|에요|입니다|이다|임|이고|이지|이래|래요)[.!]*$"
)
_FAVOURITE = re.compile(
    r"좋아하는\s?(?P<what>[가-힣A-Za-z]{1,12}?)(?:은|는|이|가)\s(?:이제 |지금은 )?(?P<one>[^.,!?]{1,30}?)"
    r"(?:이야|야|예요|이에요|에요|입니다|이다|임|이지|이거든)?[.!~\s]*$"
)
_LIKES = re.compile(
    r"([가-힣A-Za-z]{1,12}?)(?:을|를|은|는|이|가|도)?\s?(?:진짜 |정말 |제일 |너무 |더 |별로 |안 )?(좋아|싫어|못 ?먹|안 ?먹|선호)"
)
_SLOTS = (
    (_NAME, "user.name"),
    (_HOME, "user.home"),
    (_ALLERGY, "user.allergy"),
    (_EMPLOYER, "user.employer"),
)


def asks(sentence: str) -> bool:
    """Whether a Korean sentence or clause is a question, with its mark or without."""
    return _QUESTION.search(sentence) is not None


def judge(sentence: str, speaker: Speaker, project: str) -> Judgement | None:
    """What is worth keeping of a Korean sentence."""
    if asks(sentence) or _HEDGE.search(sentence) or _SMALL.search(sentence):
        return None
    past = _PAST.search(sentence) is not None
    if speaker == "assistant":
        return _work(sentence, past, theirs=True)
    if speaker == "user" and _STANDING.search(sentence) and _ASK.search(sentence):
        return _instruction(sentence, project)
    if (
        speaker == "user"
        and re.search(r"지 ?(?:마|말아)", sentence)
        and (_WHEN.search(sentence) or "절대" in sentence)
    ):
        return _instruction(sentence, project)
    if _COMMAND.search(sentence) and not re.search(r"(?:요|다|고|서|데),? [^.]{2,60}$", sentence):
        return None
    if project:
        found = _work(sentence, past, theirs=False)
        if found is not None:
            return found
        if not _MINE.search(sentence):  # a clear slot is kept without a pronoun too
            return slotted(sentence, _SLOTS, dated=_DATED.search(sentence) is not None, past=past)
    return _person(sentence, past)


def _instruction(sentence: str, project: str) -> Judgement:
    return instruction(
        scene=_WHEN.search(sentence) is not None,
        project=bool(project) and bool(_PROJECT.search(sentence) or not _ITSELF.search(sentence)),
        never=_NEVER.search(sentence) is not None,
    )


def _person(sentence: str, past: bool) -> Judgement | None:
    dated = _DATED.search(sentence)
    filled = slotted(sentence, _SLOTS, dated=dated is not None, past=past)
    if filled is not None:
        return filled
    best = _FAVOURITE.search(sentence)
    if best:
        return favourite(best)
    likes = _LIKES.search(sentence)
    if likes:
        value = "yes" if likes.group(2) in ("좋아", "선호") and "안 " not in likes.group() else "no"
        return Judgement(type="persona", priority=60, slot=f"preference:{likes.group(1)}", value=value)
    habit = re.search(r"마다|매주|매일|보통|주로", sentence)
    if dated and not habit and (past or _PLAN.search(sentence)):
        return Judgement(type="episodic", priority=60, past=past)
    if _ATTRIBUTE.search(sentence) and not past:
        return Judgement(type="episodic" if dated else "persona", priority=45)
    if _PERSONA.search(sentence) and len(sentence) > 5:
        return Judgement(type="persona", priority=55, past=past)
    if (_MINE.search(sentence) or _KIN.search(sentence)) and past and len(sentence) > 6:
        return Judgement(type="episodic", priority=45, past=True)
    return None


def _work(sentence: str, past: bool, *, theirs: bool) -> Judgement | None:
    if _WORKS.search(sentence):
        return Judgement(type="work_method", priority=60, past=past)
    if _CAUSE.search(sentence) and (past or not theirs):
        return Judgement(type="work_fact", priority=65, past=True)
    if _MADE.search(sentence):
        return Judgement(type="work_artifact", priority=55, past=past)
    if _DECIDED.search(sentence):
        return Judgement(type="work_fact", priority=65, past=True)
    if theirs:
        return None
    if _TASK.search(sentence):
        return Judgement(type="work_task", priority=60)
    if _FACT.search(sentence) and (_DECLARES.search(sentence) or past):
        return Judgement(type="work_fact", priority=55, past=past)
    return None
