"""Function words: they say how a question is asked, not what it is about."""

from __future__ import annotations

_ENGLISH = """
a about above after again against all also am an and any are arent as at be because been before being
below between both but by can cant could couldnt did didnt do does doesnt doing dont down during each
few for from further had hadnt has hasnt have havent having he her here hers herself him himself his how
i if in into is isnt it its itself just let me more most my myself no nor not now of off on once only or
other our ours ourselves out over own same she should shouldnt so some such than that the their theirs
them themselves then there these they this those through to too under until up upon us very was wasnt we
were werent what when where which while who whom whose why will with wont would wouldnt yet you your
yours yourself yourselves
"""

# Bigrams that are particles, endings and question words by themselves. A content word that shares one with
# them is still found by its others. More of them do not help: what is common weighs little in BM25 anyway.
_KOREAN = """
에서 에게 한테 으로 까지 부터 하고 이랑 라고 이라 처럼 보다 마다 조차 이나 거나 지만 는데 은데 니까 면서
습니 니다 입니 합니 있습 했습 었습 았습 인가 나요 가요 는지 을까 어요 아요 에요 예요 이에 이다 있다
있는 있어 했다 하는 했던 했어 무엇 뭐가 뭐야 뭐를 뭐였 어디 디에 언제 누구 누가 어떤 어떻 떻게 얼마 왜냐 저는
나는 제가 내가 우리 너는 당신 그는 그녀 그것 이것 저것 그리 리고 그런 런데 하지 대해 대한 관한
"""
_CHINESE = """
什么 甚么 怎么 怎样 哪里 哪儿 哪个 哪些 哪位 多少 几个 为何 为什 如何 是否 有没 是什 么的
"""
_JAPANESE = """
です ます まし した でし たか すか して てい いる いた いま ない なか から まで より ので のに けど など
だけ ほど では には とは にも でも との への この その あの どの これ それ あれ どれ ここ そこ どこ いつ
だれ 誰が 誰の 何が 何を 何で 何の 何か なに なん どう どん んな よう うに こと もの という いう って
れた れる られ せん ませ でき わた たし 私は 私の 私が 僕は 僕の
"""

_LANGUAGES = (_ENGLISH, _KOREAN, _CHINESE, _JAPANESE)
STOP_WORDS = frozenset(word for language in _LANGUAGES for word in language.split())
