"""Chinese: what a sentence is about, by its particles, its copula, its aspect and its verb."""

from __future__ import annotations

import re

from lamina.atoms.builtin.judgement import Judgement, Speaker, favourite, instruction, slotted

F = re.IGNORECASE
_QUESTION = re.compile(
    r"[?？]|[吗嗎呢吧][。.!！~～\s]*$|(?<!那)(?<!这)(?<!這)(?<!要)(?<!多)[么麼][。.!！~～\s]*$|"
    # what, how, why, who, which, where, how many; but not `anything`, `nobody`, `how ... too`, `the more`
    r"(?:什么|什麼|谁|誰|啥|哪[个個裡里儿些位年天]|怎么|怎麼|怎样|怎樣)(?![^，。]{0,8}[都也](?![^，。]{0,6}[吗嗎呢]))(?<!没什么)(?<!沒什麼)|为啥|为什么|為什麼|"
    r"(?<!没)(?<!没有)(?<!沒)(?<!不管)(?<!无论)(?<!不论)(?:多少|几点|幾點|几个|幾個)(?!有点|有點|次都|都|也)|"
    r"(?P<a>[一-鿿])[不没沒](?P=a)(?!同|如|过|過)|有没有|有沒有|(?:能|会|會|可|应|應|要|该|該|愿|願|喜|知)[不没沒](?:能|会|會|可|应|應|要|该|該|愿|願|喜|知)"
)
# Nothing is asked where one of these goes before: whatever, no matter whether, I do not know that.
_NO_QUESTION = re.compile(
    r"不管|无论|無論|不论|不論|随便|(?:没|沒)(?:有)?(?:什么|什麼|啥|多少)|来不及|來不及|差不多|了不得|(?:看|想|算|说)不(?:看|想|算|说)到|动不动|時不時|时不时|要不要紧"
)
_HEDGE = re.compile(
    r"如果|假如|要是|倘若|万一|要不然|就好了|也许|或许|可能会|说不定|我在想|随便想想|想象|随口|听说|據說|据说|好像|似乎|不确定|不確定|估计"
)
_STANDING = re.compile(
    r"以后|以後|今后|今後|从现在|從現在|从今|一直|永远|永遠|始终|每次|总是|總是|一律|务必|務必|必须|必須|千万|千萬|切记|切記|绝对|絕對|别再|不要再|默认|默認|请勿|禁止|统一|一定要|都要|只[用能]"
)
_ASK = re.compile(
    r"不要|别|別|请|請|勿|禁止|务必|務必|必须|必須|一律|都?要|用|写|寫|回答|回复|叫我|称呼|給我|给我|记得|先|只|保持|放|跑|提交|问|確認|确认"
)
_RULE = re.compile(
    r"(?:^|[，,：:。]|的时候|時候|时|里|中|把\S{1,10}|请|請)(?:请|請)?(?:不要|别|別|勿|不准|不得|禁止)(?!说|客气|担心|急|提了|闹|吓|介意|看我)|千万|千萬"
)
_NEVER = re.compile(
    r"不要|别(?!的|人|处|名)|別(?!的|人)|勿|禁止|不准|不得|永不|不许|不能|不可|不用(?!户)|绝不|切勿|拒绝"
)
_ALWAYS = re.compile(
    r"(?:必须|必須|务必|務必|一定要|都要|都用|一律|统一|请|請|只[用能]|改用|用)(?!不|别|別|勿|户|禁|再|一?律?不)"
)
_WHEN = re.compile(
    r"的?时候|的?時候|[写寫做出改画翻查发發回评評审審]\S{1,6}(?:时|時|请|請|前|后|必须|要|务必)|提交信息|邮件里|邮件[要请用]|注释|評審|评审|标题|周报|报告里|之前先|之前要"
)
_PROJECT = re.compile(
    r"仓库|倉庫|项目|專案|代码|代碼|分支|模块|模組|目录|目錄|页面|組件|组件|接口|依赖|依賴|数据库|資料庫|迁移|部署|测试|測試|配置|主干|生产|生產|線上|线上|線上|上线|函数|类型|TypeScript|main|master|`|/"
)
_ITSELF = re.compile(
    r"回答|回复|回覆|答复|解释|解釋|语气|語氣|表情|称呼|叫我|总结|總結|简洁|简短|问我|問我|告诉我|告訴我|跟我|征求|密钥|密鑰|密码|密碼|口令|凭证|令牌|所有项目"
)
_MINE = re.compile(r"我|咱|俺|本人")
_KIN = re.compile(
    r"我(?:的)?(?:妹|姐|哥|弟|妈|媽|爸|老公|老婆|女儿|女兒|儿子|兒子|男友|女友|男朋友|女朋友|爷爷|奶奶|外婆|外公|孩子|室友|同事|猫|狗|父母|家)"
)
_PERSONA = re.compile(
    r"我(?:的名字)?(?:叫|是(?!说|說|想|指|不是)|姓)|过敏|過敏|喜欢|喜歡|讨厌|討厭|爱[吃喝看玩听]|愛[吃喝看玩聽]|不吃|不喝|不能吃|不爱|吃素|住在|住[^了]{0,4}|养了|養了|养着|在\S{1,10}(?:工作|上班|教|读|讀|当|當|做)|"
    r"自己开|是一名|是个|是個|的职业|习惯|習慣|平时|平時|每[周週天月年晚早]|最[爱愛喜讨想好]|偏好|更喜|擅长|擅長|会说|會說|生日|今年\d|岁|歲|在学|在學|正在学|色盲|左撇子|怕|受不了|单身|單身|单亲|结婚|結婚|已婚|有[一两三二兩]?[个個只隻]|"
    r"从周\S改|不再|戒|班|通勤"
)
_EPISODIC = re.compile(
    r"[了过過]|要去|去了|准备去|打算|会去|將|计划|預約|预约|约了|約了|有个|面试|考试|考試|婚礼|婚禮|手术|出差|旅行|旅游|搬|入职|入職|离职|離職|毕业|畢業|结婚|订婚|訂婚|领证|領證|办的|开家长会|开会|聚会|体检|體檢|飞|飛|回国|回國|参加|參加|看牙|改到|开学"
)
_DATED = re.compile(
    r"昨[天晚]|今[天晚早]|明[天晚早]|前天|后天|後天|大前天|上[个個]?[周週月]|下[个個]?[周週月]|这[个個]?[周週月]|這[個]?[周週月]|本[周週月]|周[一二三四五六日天末]|週[一二三四五六日末]|星期|礼拜|禮拜|\d{1,2}\s?月|\d{1,2}\s?[号號日]|去年|今年|明年|"
    r"前年|\d{4}\s?年|[\d一两兩二三四五六七八九十半几]+\s?(?:天|周|週|[个個]?(?:星期|月)|年)\s?(?:前|后|後|之前|以前)|[春夏秋冬]天|月初|月底|年初|年底|暑假|寒假|国庆|元旦|春节"
)
_PAST = re.compile(r"了|过[。，,！!]?$|过(?!敏|去|年|程|来|滤|期|度)|昨|上[个個]?[周週月]|去年|前天|之前|的时候是|刚")
_CAUSE = re.compile(
    r"原因(?:是|在于|為|为)|根因|导致|導致|因为|因為|由于|由於|所以|是个?\s?bug|的?bug\s?(?:是|在)|问题(?:是|出在|在于)|修复|修復|修好|解决了|已解决|当成了|寫成了|写成了|漏了|忘了|没有?\S{0,8}(?:关闭|释放|初始化|加锁|判断|处理)|不支持|冲突|"
    r"就好了$|挂了|崩了",
    re.IGNORECASE,
)
_WORKED = re.compile(
    r"bug|问题|問題|原因|根因|修|解决|缓存|緩存|快取|内存|記憶體|线程|连接|連線|配置|脚本|腳本|接口|服务|服務|代码|代碼|程序|报错|报|錯誤|日志|超时|死锁|部署|测试|測試|版本|依赖|数据|數據",
    F,
)
_DECIDED = re.compile(
    r"决定|決定|选[了定择]|選[了定擇]|改用|换成|換成|改为|改為|不用了|放弃|采用|採用|敲定|定为|统一(?:到|用|成|为)|迁移到|切到|切换到|升级到|升級到"
)
_WORKS = re.compile(
    r"(?:用|执行|執行|运行|運行|跑|通过|敲|輸入|输入|靠)\s?`[^`]{2,120}`|`[^`]{2,120}`[^。]{0,40}(?:可用|有效|成功|就行|即可|就可以|搞定|通过|可以|能)"
)
_MADE = re.compile(
    r"(?:`[^`]{2,100}`|https?://[^\s，。]+|[\w.@-]*/[\w./-]+|[\w-]+\.(?:py|ts|tsx|js|md|go|rs|sh|sql|ya?ml|json|toml|java|vue|proto)\b|\bPR\b|#\d+)"
)
_MAKES = re.compile(
    r"更新了|写了|寫了|新增|加了|加入|添加|创建|建了|放在|放到|写在|寫在|写到|存到|存在|保存|生成|整理|提交|推到|开了|提了|改到|挪到|移到|拆到|发布|在\s?(?:https?|`|[\w.]*/)|里加|封装|文档在|导出"
)
_TASK = re.compile(
    r"必须|必須|之前(?:要|得|必)?|前要|前必|要(?:提交|上线|上線|交|发布|完成|修|改|做|补|合|写)|截止|得(?:在|把|先)|还没|还差|待办|todo|推迟|推遲|延期|延到|提测|负责.{0,6}在|还需要|需要(?:在|把|补)|交付",
    re.IGNORECASE,
)
_FACT = re.compile(
    r"\d|[A-Z][\w.+-]+|`|版本|端口|連接埠|负责|負責|服务器|伺服器|环境|環境|数据库|資料庫|框架|线上|線上|線上|测试环境|生产|生產"
)
_DECLARES = re.compile(
    r"是|用的?|有|在|由|改成|改为|跑|部署|支持|依赖|限制|最多|至少|只|不能|不支持|过期|了|需要|占|叫|走|接|连|升|装|存|写|归"
)
_SMALL = re.compile(
    r"^(?:好的?|嗯+|哦+|哈+|谢+|謝+|感谢|收到|行|懂了|明白|可以|没事|对+|是的|不错|厉害|牛|恭喜|辛苦|早|晚安|你好|您好|哈喽|嗨|在吗|再见|拜拜|漂亮|加吧|赞)\S{0,6}[\s。.!！~～，,]*$"
)
_COMMAND = re.compile(
    r"^(?:那|先|再|帮我|幫我|麻烦|麻煩|请|請|给我|給我|你)?(?:帮我|帮忙|再)?(?:跑|运行|打开|打開|看下|看一?看|看看|查|写个|寫個|改一?下|执行|试试|删|列|解释|翻译|总结|画|生成|加吧|继续|说说|讲讲)"
)
_NAME = re.compile(r"我(?:的名字)?叫([一-鿿A-Za-z]{2,8}?)(?=$|[，,。！!\s的])|我是([一-鿿]{2,4})(?=，在|,在)")
_HOME = re.compile(r"(?:搬到|搬去|搬来|住在|定居|住到|移居)(?:了)?([一-鿿A-Za-z]{2,8}?)(?:了|，|,|。|$|的|住)")
_EMPLOYER = re.compile(
    r"(?:入职|入職|加入|就职于|任职于|跳槽到|跳到)了?([一-鿿A-Za-z0-9]{2,15}?)(?:了|，|,|。|当|做|$)|(?<!现)(?<!現)在([一-鿿A-Za-z0-9]{2,12}?)(?:上班|工作|就职)"
)
_ALLERGY = re.compile(r"对([一-鿿]{1,8}?)(?:严重|有点|特别)?(?:过敏|過敏)")
# Somebody or something has this: "the place of the fair is Suzhou".
_ATTRIBUTE = re.compile(
    r"^(?!这|那|它|其|问题|问|谁)[^，。,？?]{2,24}?的?(?:持续时间|时间|日期|地点|地址|规模|主要内容|主题|邮箱(?:地址)?|电话(?:号码?)?|手机号码?"
    r"|生日|名字|姓名|单位|家乡|老家|学历|职业|身高|年龄|价格|预算|截止(?:日期|时间))(?:是|叫|在|为|有|只有|才)"
)
_INTENDS = re.compile(
    r"^我们?(?:将要|即将|打算|计划|准备|报名|报了名)(?:去|要|了)?(?:参加|出席|举办|参观|旅游|旅行|搬|学)"
)
_FAVOURITE = re.compile(
    r"我?(?:现在)?最喜[欢歡]的(?P<what>[一-鿿A-Za-z]{1,10}?)(?:还是|就是|是)(?P<one>[^，。！？,.!?]{1,30})"
)
_LIKES = re.compile(
    r"(不太?喜欢|不喜歡|喜欢|喜歡|讨厌|討厭|不爱|最爱|爱[吃喝看玩]|不吃|不喝|受不了|偏爱|更喜欢)([一-鿿A-Za-z]{1,10})"
)
_SLOTS = (
    (_NAME, "user.name"),
    (_HOME, "user.home"),
    (_ALLERGY, "user.allergy"),
    (_EMPLOYER, "user.employer"),
)


def asks(sentence: str) -> bool:
    """Whether a Chinese sentence or clause is a question, with its mark or without."""
    if re.search(r"[?？]", sentence):
        return True
    return _QUESTION.search(_NO_QUESTION.sub("", sentence)) is not None


def judge(sentence: str, speaker: Speaker, project: str) -> Judgement | None:
    """What is worth keeping of a Chinese sentence."""
    if asks(sentence) or _HEDGE.search(sentence) or _SMALL.search(sentence):
        return None
    past = _PAST.search(sentence) is not None
    if speaker == "assistant":
        return _work(sentence, past, theirs=True)
    rule = (_STANDING.search(sentence) and _ASK.search(sentence) and not _dated_task(sentence)) or _RULE.search(
        sentence
    )
    if speaker == "user" and rule and not re.match(r"^(?:我|他|她|咱)", sentence):
        return _instruction(sentence, project)
    if _COMMAND.match(sentence):
        return None
    if project:
        found = _work(sentence, past, theirs=False)
        if found is not None:
            return found
        if not _MINE.search(sentence):  # a clear slot is kept without a pronoun too
            return slotted(sentence, _SLOTS, dated=_DATED.search(sentence) is not None, past=past)
    return _person(sentence, past)


def _dated_task(sentence: str) -> bool:
    return _DATED.search(sentence) is not None and _TASK.search(sentence) is not None and not _NEVER.search(sentence)


def _instruction(sentence: str, project: str) -> Judgement:
    return instruction(
        scene=_WHEN.search(sentence) is not None,
        project=bool(project) and bool(_PROJECT.search(sentence) or not _ITSELF.search(sentence)),
        never=_leads_never(sentence),
    )


def _leads_never(sentence: str) -> bool:
    """What the first of its orders says counts: what follows `use this, not that` explains it."""
    never = _NEVER.search(sentence)
    always = _ALWAYS.search(sentence)
    return never is not None and (always is None or never.start() <= always.start())


def _person(sentence: str, past: bool) -> Judgement | None:
    dated = _DATED.search(sentence)
    habit = re.search(r"每[周週天月年晚早]|平时|平時|一般", sentence)
    filled = slotted(sentence, _SLOTS, dated=dated is not None, past=past)
    if filled is not None:
        return filled
    best = _FAVOURITE.search(sentence)
    if best:
        return favourite(best)
    likes = _LIKES.search(sentence)
    if likes and not (dated and not habit):
        value = "no" if re.match(r"不|讨厌|討厭|受不了", likes.group(1)) else "yes"
        return Judgement(type="persona", priority=60, slot=f"preference:{likes.group(2)}", value=value)
    if dated and not habit and _EPISODIC.search(sentence):
        return Judgement(type="episodic", priority=60, past=past)
    if _PERSONA.search(sentence) and (_MINE.search(sentence) or habit or len(sentence) < 40):
        return Judgement(type="persona", priority=55, past=past)
    if _INTENDS.search(sentence):
        return Judgement(type="episodic", priority=45)
    if _ATTRIBUTE.search(sentence):
        return Judgement(type="episodic" if dated else "persona", priority=45, past=past)
    if (_MINE.search(sentence) or _KIN.search(sentence)) and past and len(sentence) > 6:
        return Judgement(type="episodic", priority=45, past=True)
    return None


def _work(sentence: str, past: bool, *, theirs: bool) -> Judgement | None:
    if _WORKS.search(sentence):
        return Judgement(type="work_method", priority=60, past=past)
    if _CAUSE.search(sentence) and (
        _WORKED.search(sentence) or past or _FACT.search(sentence) or _MINE.search(sentence)
    ):
        return Judgement(type="work_fact", priority=65, past=True)
    if re.search(r"决定|決定", sentence):
        return Judgement(type="work_fact", priority=65, past=True)
    if _MADE.search(sentence) and _MAKES.search(sentence):
        return Judgement(type="work_artifact", priority=55, past=past)
    if _DECIDED.search(sentence) and (past or not theirs or "决定" in sentence):
        return Judgement(type="work_fact", priority=65, past=True)
    if theirs:
        return None
    if _TASK.search(sentence) and (_DATED.search(sentence) or re.search(r"还|待|需要|负责", sentence)):
        return Judgement(type="work_task", priority=60)
    if _FACT.search(sentence) and _DECLARES.search(sentence):
        return Judgement(type="work_fact", priority=55, past=past)
    if _DATED.search(sentence) and past and re.search(r"挂|崩|升级|上线|下线|接手|负责|迁", sentence):
        return Judgement(type="work_fact", priority=55, past=past)
    return None
