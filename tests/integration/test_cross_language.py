"""A question in one language finds what was said in another: 60 pairs of our own among each other and distractors."""

from __future__ import annotations

import numpy as np
import pytest

from lamina.embedding.packaged import e5, installed
from lamina.query.vectors import SCRIPTS, even
from lamina.vectors.fold import passage, script

pytestmark = pytest.mark.skipif(installed() is not e5, reason="the default model has no wheel for this machine")

# (English, other language): the statement is in one, the question in the other, half of them each way.
KOREAN = (
    ("Where is the spare key?", "비상 열쇠는 화분 밑에 숨겨 두었어."),
    ("What food is Minsu allergic to?", "민수는 땅콩 알레르기가 있어서 땅콩을 먹으면 안 돼."),
    ("When is the dentist appointment?", "치과 예약은 다음 주 화요일 오후 세 시로 잡았다."),
    ("Which database did the team choose?", "우리 팀은 데이터베이스로 PostgreSQL을 쓰기로 했어."),
    ("How long is the flight to Hawaii?", "하와이까지 비행기로 아홉 시간 걸렸어."),
    ("What is the dog called?", "우리 강아지 이름은 초코야."),
    ("What instrument does the daughter play?", "딸이 요즘 바이올린을 배우고 있어요."),
    ("How much is the rent?", "이번 집 월세는 팔십만 원이야."),
    ("Why was the train late?", "폭설 때문에 기차가 두 시간이나 늦게 도착했어."),
    ("What broke in the kitchen?", "어제 부엌 냉장고가 고장 나서 수리 기사를 불렀다."),
    ("My grandmother turned ninety last month.", "할머니는 연세가 어떻게 되셔?"),
    ("I started jogging by the river every morning.", "아침마다 무슨 운동을 하나요?"),
    ("The wedding will be held at a hotel in Jeju.", "결혼식은 어디에서 해?"),
    ("We paint the living room walls light green.", "거실 벽은 무슨 색으로 칠하나요?"),
    ("My passport expires in March.", "여권은 언제 만료돼?"),
    ("The server runs out of memory every night.", "서버에 밤마다 무슨 문제가 생기나요?"),
    ("I quit coffee and drink green tea now.", "요즘 커피 대신 뭘 마셔?"),
    ("He broke his left arm while skiing.", "스키 타다가 어디를 다쳤어?"),
    ("Our boss moved the deadline to Friday.", "마감일이 언제로 바뀌었어?"),
    ("The children are afraid of thunder.", "아이들은 무엇을 무서워해?"),
)
CHINESE = (
    ("Where did we park the car?", "我们把车停在地下三层的B区。"),
    ("What gift does Mom want?", "妈妈说生日想要一条丝巾。"),
    ("What is the wifi password?", "无线网络的密码是大写的房间号加生日。"),
    ("Which city will he move to?", "他明年要搬到成都去工作。"),
    ("What did the doctor recommend?", "医生建议我少吃盐多走路。"),
    ("What is the cat's favourite place?", "小猫最喜欢躺在窗台上晒太阳。"),
    ("Who fixed the bicycle?", "自行车是隔壁王叔叔帮我修好的。"),
    ("How many pages has the report?", "这份报告一共写了四十页。"),
    ("Which book is he reading?", "他最近在读《红楼梦》。"),
    ("Why was the meeting cancelled?", "因为经理发烧了，今天的会议取消了。"),
    ("My brother is studying law in Beijing.", "哥哥在大学学什么专业？"),
    ("We planted tomatoes on the balcony.", "阳台上种了什么蔬菜？"),
    ("The laptop screen is cracked.", "笔记本电脑哪里坏了？"),
    ("I lost my wallet on the subway.", "钱包是在哪里丢的？"),
    ("The restaurant is closed on Mondays.", "那家餐厅星期几休息？"),
    ("She speaks French at home with her husband.", "她和丈夫在家说什么语言？"),
    ("The tests fail only on Windows.", "测试在哪个系统上会失败？"),
    ("Grandpa used to be a railway engineer.", "爷爷以前是做什么工作的？"),
    ("I take the medicine twice a day after meals.", "这个药一天吃几次？"),
    ("We will celebrate New Year with fireworks.", "过年的时候怎么庆祝？"),
)
JAPANESE = (
    ("What time does the shop open?", "あの店は朝十時に開きます。"),
    ("Where did they meet for the first time?", "二人は大学の図書館で初めて出会った。"),
    ("What is she afraid of?", "彼女は高い所がとても苦手です。"),
    ("Which framework is used for the web app?", "ウェブアプリにはDjangoを使うことにした。"),
    ("What did he buy with his bonus?", "ボーナスで新しいカメラを買ったんだ。"),
    ("What kind of house do we look for?", "庭のある静かな一軒家を探しています。"),
    ("How does he go to work?", "彼は毎日自転車で通勤している。"),
    ("When does the summer holiday begin?", "夏休みは七月二十日から始まる。"),
    ("What sport did the son give up?", "息子はサッカーをやめてしまった。"),
    ("Who won the chess tournament?", "チェスの大会では妹が優勝しました。"),
    ("My aunt runs a bakery in Kyoto.", "叔母さんはどんな店をやっていますか？"),
    ("The heating in the office is broken.", "オフィスの何が壊れていますか？"),
    ("I am learning to play the guitar.", "最近どんな楽器を習っていますか？"),
    ("We take the night bus to Osaka.", "大阪までどうやって行きますか？"),
    ("The baby was born on Christmas Eve.", "赤ちゃんはいつ生まれましたか？"),
    ("He doesn't eat raw fish.", "彼が食べられない物は何ですか？"),
    ("The backup runs every Sunday at two.", "バックアップはいつ実行されますか？"),
    ("She left her umbrella in the taxi.", "彼女は傘をどこに忘れましたか？"),
    ("The moon looked huge last night.", "昨夜の月はどうでしたか？"),
    ("Our team lost the final by one point.", "決勝戦の結果はどうでしたか？"),
)
DISTRACTORS = (
    "The bridge was closed for repairs all weekend.",
    "I forgot to water the orchids again.",
    "Please send the invoice to the new address.",
    "버스 정류장에 사람이 너무 많았어.",
    "새로 산 신발이 조금 작은 것 같아.",
    "这部电影的结尾让人很意外。",
    "超市里的牛奶卖完了。",
    "隣の部屋から音楽が聞こえてくる。",
    "プリンターの紙がなくなりました。",
    "The museum was crowded on Sunday.",
)


def test_a_question_finds_what_was_said_in_another_language() -> None:
    model = e5()
    pairs = []  # (question, statement)
    for language in (KOREAN, CHINESE, JAPANESE):
        pairs += [(question, said) for question, said in language[:10]]
        pairs += [(question, said) for said, question in language[10:]]
    texts = [passage("user", said) for said in (*(said for _, said in pairs), *DISTRACTORS)]
    rows = model.passages(texts)
    groups = np.array([SCRIPTS.index(script(text)) for text in texts])
    cosines = np.stack([rows @ model.query(question) for question, _ in pairs])
    plain = sum(int(np.argmax(row)) == n for n, row in enumerate(cosines))
    evened = [even(row, groups) for row in cosines]
    first = sum(int(np.argmax(row)) == n for n, row in enumerate(evened))
    among_three = sum(n in np.argsort(-row)[:3] for n, row in enumerate(evened))

    assert len(pairs) == 60
    assert first >= 50  # 53 when it was written; without `even` 38, of whose 22 misses 21 are texts in the question's
    assert among_three >= 57  # own language
    assert first > plain
