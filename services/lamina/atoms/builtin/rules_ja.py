"""Japanese: what a sentence is about, by its ending, its particles and its verb."""

from __future__ import annotations

import re

from lamina.atoms.builtin.judgement import Judgement, Speaker, favourite, instruction, slotted

_QUESTION = re.compile(
    r"[?？]|(?:です|ます|ません|でした|ました|でしょう|だろう|のだろう|んです|ですかね|ますかね)か(?:ね|な)?[。!！〜～笑w\s]*$|(?:かな|かなあ|かしら|だっけ|っけ|のかな)[。〜～ーw笑\s]*$|"
    r"(?:なに|何|どこ|いつ|誰|だれ|なぜ|なんで|どうして|どう|どれ|どの|どんな|いくら|いくつ)\S{0,14}(?:の|か|ん|です|ます|だろう|でしょう)[。〜～w笑\s]*$"
)
_HEDGE = re.compile(
    r"もし|たとえば|仮に|かもしれ|のになあ?|だったらなあ?|たらどう|ばよかった|妄想|と思ったり|気がする|らしい|みたいです?ね|どうなんだろう|いっそ|だろうなあ?$|ようかな"
)
_STANDING = re.compile(
    r"必ず|常に|今後|これから|いつも|毎回|絶対|ぜったい|二度と|以後|以降は|次からは?|今度から|原則|基本的に|デフォルト|もう(?=[^。]{0,30}(?:ないで|なくて))|決して|一切|極力|なるべく|必須|厳禁|禁止|徹底"
)
_ASK = re.compile(
    r"(?:て|で)(?:ください|下さい|ね|ほしい|欲しい|もらえ\S{0,6}|もらい\S{0,4}|いただけ\S{0,8}|くれ\S{0,4}|頂\S{0,6})?(?:ね|よ)?[。!！〜～\s]*(?:$|[、,])|こと[。\s]*(?:$|[、,])|(?:お願い|願い|頼)|(?:しよう|ましょう|べき|ルール|禁止|厳禁|必須)|ように(?:して)?"
)
_DONT = re.compile(
    r"ないで|ないよう|なくてい|禁止|厳禁|やめて(?:ください|ね|ほしい|[。\s]*$)|ないこと|べからず|控えて"
)
_WHEN = re.compile(
    r"とき|時は|際[はに]?|場合|する前|した後|たら必ず|メッセージ|メールは|メールで|レビュー|コミットは|資料は|議事録|タイトル|要約|翻訳|コメント|の前に"
)
_PROJECT = re.compile(
    r"リポジトリ|プロジェクト|コード|ブランチ|コンポーネント|モジュール|テスト|デプロイ|スキーマ|マイグレーション|依存|ライブラリ|本番|DB|API|型|関数|ディレクトリ|設定|ビルド|パッケージ|main|`|/"
)
_ITSELF = re.compile(
    r"回答|返答|返事|答え|説明|敬語|タメ口|絵文字|呼んで|要約|短く|簡潔|聞いて|訊いて|確認し|確認を|教えて|相談|秘密|パスワード|トークン|認証情報|すべてのプロジェクト|全プロジェクト"
)
_MINE = re.compile(r"私|わたし|あたし|僕|ぼく|俺|おれ|自分|うち|我が家|当方")
_KIN = re.compile(
    r"兄貴?|姉|弟|妹|母|父|親|妻|夫|嫁|旦那|息子|娘|彼氏|彼女|犬|猫|祖母|祖父|おばあ|おじい|いとこ|甥|姪|子ども|子供|ルームメイト|家族|うちの"
)
_PERSONA = re.compile(
    r"と申し|名前は|といいます|と呼んで|アレルギー|趣味は|職業は|誕生日|出身|専攻|血液型|好き|好み|嫌い|苦手|大好き|得意|愛用|飼って|飼い|住んで|住み|暮らし|働いて|働き|勤め|勤務|教えて(?:い|お|る|ます)|フリー|通って|通い|"
    r"エンジニア|教師|看護師|医師|デザイナー|学生|作家|翻訳|会社員|研究|ベジタリアン|ヴィーガン|菜食|糖尿|色覚|左利き|食べられ|飲め[なま]|食べない|飲まない|しか(?:飲|食|使|見)|毎週|毎日|毎朝|毎晩|いつも|普段|ふだん|週に|話せ|"
    r"習って|勉強して|一人暮らし|結婚して(?:い|る)|独身|歳|才です|から\S{1,4}曜?に変わ|持って(?:い|る|ます)|の方が(?:好|い)|派です|派なんで|弱い|怖い"
)
_PAST = re.compile(
    r"(?:た|だ)(?:よ|ね|ー|んだ|んです|の|けど|ので|から|！|!|。|、|わ|ばかり|し)?[。!！〜～ーw笑\s]*(?:$|[、,])|ました|でした|だった|[いえき]た[。、]|(?:先|昨|去年|前の|この前)"
)
_DATED = re.compile(
    r"昨日|一昨日|おととい|今日|明日|あした|明後日|あさって|今朝|今夜|昨夜|先[週月日]|今[週月]|来[週月年]|再来[週月年]|先々[週月]|去年|昨年|今年|一昨年|\d{1,2}月|\d{1,2}日|\d{4}年|[月火水木金土日]曜|週末|"
    r"[\d一二三四五六七八九十数]+(?:日|週間|か月|ヶ月|カ月|ヵ月|年)(?:前|後)|この前|この間|[春夏秋冬]に|ゴールデンウィーク|お盆|正月|年末|年始|月末|月初"
)
_PLAN = re.compile(
    r"予定|予約|あります|ある(?:ん|[。！!]|$)|あるんだ|行く|行き|参加|受け|面接|試験|検診|診断|旅行|出張|引っ越|結婚|手術|ライブ|会う|会い|発表|始ま|になりました|入れた|取った|取れ"
)
_CAUSE = re.compile(
    r"原因は|原因で|原因だ|バグ(?:で|だ|は|の)|のが(?:バグ|問題|原因)|ため[、にだでし]|せいで|ことでした|ことが原因|直しました|直した|修正しま|修正した|解決し|解消し|対応していな|非対応|ていませんでした|漏れて|競合|"
    r"いっぱいで|落ちました|落ちた|壊れ|止まっ"
)
_DECIDED = re.compile(
    r"ことにし|ことになり|決めま|決めた|決定|採用し|選びま|選んだ|にします[。\s]*$|に統一|に切り替え|に移行|に乗り換え|やめて[^。]{1,40}(?:に|を)|代わりに[^。]{1,40}(?:使|し)|に変更し|に上げ"
)
_WORKS = re.compile(
    r"`[^`]{2,120}`[^。]{0,50}(?:で(?:き|起動|動|実行|確認|生成|再現|作れ)|うまく|通り|成功|動きま|動いた|すれば|すると|でいけ|できます|になります|が必要)"
)
_MADE = re.compile(
    r"(?:`[^`]{2,100}`|https?://[^\s、。]+|[\w.@-]*/[\w./-]+|\.?[\w-]+\.(?:py|ts|tsx|js|md|go|rs|rb|sh|sql|ya?ml|json|toml|java|vue|kt)\b|\bPR\b|#\d+|\.[a-z]+-version|Dockerfile)"
)
_MAKES = re.compile(
    r"追加し|作りま|作った|作成し|書きま|書いた|更新し|まとめて(?:あ|お|い)|まとめま|置いて|置きま|保存し|あります|ある[。\s]|生成し|変更し|移しま|移した|分けま|分割し|切り出|出しま|上げま|プッシュし|公開し|登録し|入れま|導入し|記載|書いてあ|残しま|残して|にしました"
)
_TASK = re.compile(
    r"まで(?:に|には)|ないといけ|なければ|必要があ|なきゃ|しないと|締め?切|期限|リリースは|納期|延び|延期|残って(?:い|る|ます)|まだ[^。]{1,30}(?:ない|いません|です)|TODO|予定です|担当で[^。]{0,20}まで",
    re.IGNORECASE,
)
_FACT = re.compile(
    r"\d|[A-Z][\w.+-]+|`|バージョン|ポート|担当|サーバ|環境|データベース|フレームワーク|言語|ライブラリ|本番|検証|クラウド"
)
_DECLARES = re.compile(
    r"(?:です|ます|ました|でした|だ|だよ|だった|る|た|ている|てる|てます|いて|であり|のみ|だけ|必須|[0-9A-Za-z]+)(?:よ|ね|ー|んで|ので|から|けど|が)?[。!！〜～\s]*(?:$|[、,])"
)
_SMALL = re.compile(
    r"^(?:はい|ええ|うん|うーん|いや|おお?|わ[ーぁあ]|え[ーっ]?|へえ|そっか|そう|なるほど|了解|承知|ありがと|どうも|すみません|ごめん|こんにち|こんばん|おはよう|おつかれ|お疲れ|おめでとう|お願い|助かり|よろしく|さすが|いいです|すご|まじ|やった|確かに|わかりま|分かりました)\S{0,12}[。！!〜～ーw笑\s]*$"
)
_COMMAND = re.compile(
    r"(?:て|で)(?:ください|下さい|くれる?|ほしい|もらえ\S{0,6}|いただけ\S{0,8}|みて)?(?:ね|よ)?[。!！〜～\s]*$|(?:お願い|おねがい)\S{0,6}[。!！\s]*$"
)
_NAME = re.compile(
    r"(?:名前は|^)([一-鿿ぁ-んァ-ヶA-Za-z]{2,10}?)(?:と申し|といいます|と言います)|名前は([一-鿿ぁ-んァ-ヶA-Za-z]{1,10}?)(?:です|だ|。|、|$|で)"
)
_HOME = re.compile(
    r"(?:^|[、はもをて今]|\s)([一-鿿ァ-ヶA-Za-z]{1,8})(?:へ|に|で)(?:また)?(?:引っ越|住ん|住み|暮ら|移住|転居|越し)"
)
_EMPLOYER = re.compile(
    r"(?:から|は|、|^|\s)((?:(?!は|から)[一-鿿ぁ-んァ-ヶA-Za-z0-9]){2,14}?)(?:で働|に入社|に転職|に勤め|勤務|に就職)"
)
_ALLERGY = re.compile(r"([一-鿿ぁ-んァ-ヶ]{1,8}?)(?:の|に)?アレルギー")
# Somebody or something has this: "the place of the fair is Kobe".
_ATTRIBUTE = re.compile(
    r"^(?!これ|それ|あれ|問題|誰)[^、。?？]{2,24}?の(?:期間|時間|日時|日付|場所|会場|住所|規模|テーマ|内容|メール(?:アドレス)?|電話番号|誕生日|名前|"
    r"勤務先|会社|出身|学歴|職業|身長|年齢|値段|価格|予算|締め?切り?)は[^?？]{1,60}(?:です|だ|だよ|でした|になりました)?[。!！]*$"
)
_FAVOURITE = re.compile(
    r"好きな(?P<what>[一-鿿ぁ-んァ-ヶーA-Za-z]{1,12}?)は(?P<one>[^、。!！?？]{1,30}?)(?:です|だよ|だ|なんです|かな)?[。!！\s]*$"
)
_LIKES = re.compile(
    r"(?:^|[、はも])?([一-鿿ぁ-んァ-ヶA-Za-z]{1,12}?)(?:が|は|も|の(?:ほう|方)が|って)?(?:あまり|けっこう|一番|とても|めっちゃ|すごく|大)?(好き|好み|嫌い|苦手)"
)
_SLOTS = (
    (_NAME, "user.name"),
    (_HOME, "user.home"),
    (_ALLERGY, "user.allergy"),
    (_EMPLOYER, "user.employer"),
)
_PET = re.compile(r"飼って|犬|猫|ペット")


def asks(sentence: str) -> bool:
    """Whether a Japanese sentence or clause is a question, with its mark or without."""
    return _QUESTION.search(sentence) is not None


def judge(sentence: str, speaker: Speaker, project: str) -> Judgement | None:
    """What is worth keeping of a Japanese sentence."""
    if asks(sentence) or _HEDGE.search(sentence) or _SMALL.search(sentence):
        return None
    past = _PAST.search(sentence) is not None
    if speaker == "assistant":
        return _work(sentence, past, theirs=True)
    if speaker == "user":
        standing = _STANDING.search(sentence) or (_WHEN.search(sentence) and _DONT.search(sentence))
        if _ASK.search(sentence) and (
            standing or re.search(r"ないで(?:ください|下さい|ね)?[。、!！\s]|ないで(?:ください|ね)?$", sentence)
        ):
            return _instruction(sentence, project)
    if _COMMAND.search(sentence):
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
        never=_DONT.search(sentence) is not None,
    )


def _person(sentence: str, past: bool) -> Judgement | None:
    dated = _DATED.search(sentence)
    habit = re.search(r"毎[週日朝晩月年]|いつも|普段|ふだん|週に", sentence)
    slots = _SLOTS[1:] if _PET.search(sentence) else _SLOTS  # a pet's name is not the speaker's
    filled = slotted(sentence, slots, dated=dated is not None, past=past)
    if filled is not None:
        return filled
    best = _FAVOURITE.search(sentence)
    if best:
        return favourite(best)
    likes = _LIKES.search(sentence)
    if likes:
        value = "yes" if likes.group(2) in ("好き", "好み") and "じゃな" not in sentence else "no"
        return Judgement(type="persona", priority=60, slot=f"preference:{likes.group(1)}", value=value)
    if dated and not habit and (past or _PLAN.search(sentence)):
        return Judgement(
            type="episodic", priority=60, past=past and not re.search(r"予約|予定|になりました", sentence)
        )
    if dated and not habit and re.search(r"やめて|始めて|続けて|から", sentence):
        return Judgement(type="episodic", priority=50, past=True)
    if _ATTRIBUTE.search(sentence) and not past:
        return Judgement(type="episodic" if dated else "persona", priority=45)
    if _PERSONA.search(sentence):
        return Judgement(type="persona", priority=55, past=past)
    if (_MINE.search(sentence) or _KIN.search(sentence)) and past and len(sentence) > 8:
        return Judgement(type="episodic", priority=45, past=True)
    return None


def _work(sentence: str, past: bool, *, theirs: bool) -> Judgement | None:
    if _WORKS.search(sentence):
        return Judgement(type="work_method", priority=60, past=past)
    if _CAUSE.search(sentence) and not re.match(r"^(?:原因が(?:分|わ)か)", sentence) and (past or not theirs):
        return Judgement(type="work_fact", priority=65, past=True)
    if _MADE.search(sentence) and _MAKES.search(sentence):
        return Judgement(type="work_artifact", priority=55, past=past)
    if _DECIDED.search(sentence):
        return Judgement(type="work_fact", priority=65, past=True)
    if theirs:
        return None
    if _TASK.search(sentence):
        return Judgement(type="work_task", priority=60)
    if _FACT.search(sentence) and _DECLARES.search(sentence):
        return Judgement(type="work_fact", priority=55, past=past)
    return None
