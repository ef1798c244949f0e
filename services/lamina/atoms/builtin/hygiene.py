"""Text that tries to rule the memory or the agent's rules instead of telling something."""

from __future__ import annotations

import re

_RULES = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|earlier|all|any|your|system)\b.{0,30}"
    r"\b(?:instructions?|rules?|prompts?|memor(?:y|ies)|guidelines?|guardrails?)\b"
    r"|\b(?:store|save|write|record|add|remember|memori[sz]e|note|persist)\b.{0,60}\b(?:memory|memories|"
    r"profile|permanent(?:ly)?|long[- ]term|persona)\b"
    r"|\b(?:memory|assistant|ai|agent|llm|model|system)s?\b.{0,20}[:：,-].{0,40}\b(?:remember|store|save|"
    r"record|forget|must|always|never|you (?:are|must|should))\b"
    r"|\b(?:delete|erase|wipe|purge|clear)\b.{0,30}\b(?:memor(?:y|ies)|everything you (?:know|remember))\b"
    r"|\byou (?:are|must|will) now\b.{0,60}\b(?:admin|root|jailbr\w+|unrestricted|developer mode|obey)\b"
    r"|(?:이전|위의|기존|앞선|모든).{0,12}(?:지시|명령|규칙|지침|프롬프트).{0,12}(?:무시|잊)"
    r"|(?:메모리|기억|프로필|장기 ?기억).{0,16}(?:저장|기록|삭제|지워|덮어|추가|넣어|남겨)"
    r"|(?:AI|에이전트|어시스턴트|모델|시스템).{0,14}(?:기억하라|기억해야|저장하라|따라야|무시하라|해야 한다|하십시오)"
    r"|(?:忽略|无视|忘记|忘掉|無視).{0,10}(?:之前|以前|先前|上面|以上|前面|所有|一切|全部).{0,12}(?:指令|指示|规则|規則|提示|命令|说明|记忆)"
    r"|(?:写入|存入|记入|保存到|保存在|记录到|加入|写进|存进|清空|删除|抹掉|覆盖).{0,16}(?:记忆|長期記憶|内存记忆|用户档案|画像)"
    r"|(?:AI|助手|智能体|模型|系统).{0,10}(?:必须|应当|请|务必).{0,12}(?:记住|保存|忽略|记录|写入)"
    r"|请?(?:所有|各位|任何)?(?:AI|人工智能|智能体|助手|模型|机器人){1,2}.{0,6}(?:记住|牢记|保存|忽略|写入|存入|记录)[：:，,]?"
    r"|(?:以前|これまで|上記|前|すべて|全て|今まで).{0,8}(?:の)?(?:指示|命令|ルール|規則|プロンプト).{0,12}(?:無視|忘れ|破棄)"
    r"|(?:メモリ|記憶|プロフィール|長期記憶).{0,14}(?:保存|記録|書き込|追加|削除|消去|上書き|登録)"
    r"|(?:AI|エージェント|アシスタント|モデル|システム).{0,14}(?:記憶せよ|覚えよ|保存せよ|無視せよ|従え|しなければならない|記憶しなさい|保存しなさい)",
    re.IGNORECASE,
)
MAX_CHARS = 2_000


def instructs_memory(text: str) -> bool:
    """Whether `text` tries to instruct the memory, or to lift the rules of whoever reads it."""
    return _RULES.search(text, 0, MAX_CHARS) is not None
