"""Text that tries to rule the memory, or the rules of whoever reads it, instead of telling something.

Words like memory, profile and system are everyday words of people who build software: what they say of a cache is no
attempt. An attempt lifts rules, addresses an agent, or names the agent's own memory as what is to be changed.
"""

from __future__ import annotations

import re

from lamina.atoms.turns import Turn

INSTRUCTS = "it tries to instruct the memory itself"
MAX_CHARS = 2_000
_RULES = re.compile(
    # English: lift the rules; speak to an agent; change its memory
    r"\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|earlier|all|any|your|system)\b.{0,30}"
    r"\b(?:instructions?|rules?|prompts?|guidelines?|guardrails?)\b"
    r"|\b(?:assistants?|ais?|ai (?:agents?|assistants?|models?)|agents?|llms?|chatbots?)\s?[,:!]\s{0,3}(?:please\s+|you\s+(?:must|should)\s+|now\s+)?"
    r"(?:always|never|remember|store|save|record|memori[sz]e|forget|ignore|note|add|delete|treat|do|you (?:are|must|should))\b"
    r"|\b(?:store|save|write|record|add|put|commit|persist|remember|note)\b.{0,60}\b(?:in|into|to)\s+(?:your|the (?:agent|assistant|ai)'?s?|long[- ]term|persistent|permanent)"
    r"\s+(?:[\w-]+\s+){0,2}(?:memory|memories|profile|persona)\b"
    r"|\b(?:delete|erase|wipe|purge|clear|forget)\b.{0,20}\b(?:your|the (?:agent|assistant|ai)'?s?)\s+(?:[\w-]+\s+){0,2}(?:memory|memories)\b"
    r"|\beverything you (?:know|remember)\b"
    r"|\byou (?:are|must|will) now\b.{0,60}\b(?:admin|root|jailbr\w+|unrestricted|developer mode|obey)\b"
    # Korean
    r"|(?:이전|위의|기존|앞선|모든|지금까지).{0,12}(?:지시|명령|규칙|지침|프롬프트).{0,12}(?:무시|잊)"
    r"|(?:AI|인공지능|에이전트|어시스턴트|챗봇)(?:들?[은는아야여]|들?에게)?[\s,:：].{0,40}(?:기억|저장|무시|삭제|따르|따라).{0,8}(?:라|것|시오|세요|야 한|야 합|하고)"
    r"|(?:너의|네|당신의|장기|에이전트의?|어시스턴트의?)\s?(?:장기\s?)?(?:기억|메모리).{0,14}(?:저장|기록|삭제|지워|추가|남겨|덮어)"
    r"|(?:기억|메모리)(?:에|를|을)?\s?(?:모두\s)?(?:저장|기록|삭제|추가)(?:하라|해라|할 것|하십시오|하시오)"
    r"|(?:에이전트|AI|어시스턴트|챗봇)(?:들)?에게\s?[:：]"
    # Chinese
    r"|(?:致|给|給)(?:所有|各位)?\s?(?:AI|助手|智能体|机器人)\S{0,4}[：:]"
    r"|(?:忽略|无视|忘记|忘掉|無視).{0,10}(?:之前|以前|先前|上面|以上|前面|所有|一切|全部).{0,12}(?:指令|指示|规则|規則|提示|命令|说明)"
    r"|(?:AI|人工智能|智能体|助手|机器人|大模型){1,2}[，,：:\s]?.{0,8}(?:记住|牢记|忽略|必须记|请保存|务必记|写入记忆|存入记忆|必须把|请把)"
    r"|(?:写入|存入|记入|写进|存进|保存到|保存进|记录到|加入)(?:到)?(?:你的|長期|长期|永久|AI的|助手的){0,2}(?:记忆|記憶)(?!体|卡|库|體)"
    r"|(?:清空|删除|抹掉|覆盖|清除).{0,6}(?:你的|所有|全部|长期)(?:记忆|記憶)"
    # Japanese
    r"|(?:AI|エージェント|アシスタント)\S{0,8}?へ[：:]"
    r"|(?:以前|これまで|上記|前|すべて|全て|今まで).{0,8}(?:の)?(?:指示|命令|ルール|規則|プロンプト).{0,12}(?:無視|忘れ|破棄)"
    r"|(?:AI|エージェント|アシスタント|チャットボット)\S{0,8}?(?:へ|は|よ)?[：:、,].{0,40}(?:記憶|覚え|保存|無視|含め|従)"
    r"|(?:あなたの|長期|永続|エージェントの|アシスタントの)(?:メモリ|記憶).{0,14}(?:保存|記録|書き込|追加|削除|消去|上書き|登録)"
    r"|(?:メモリ|記憶)(?:に|へ|を)(?:すべて)?(?:保存|記録|追加|書き込|削除|消去)(?:せよ|しろ|すること|しなさい|め)",
    re.IGNORECASE,
)
_HINT = re.compile(
    "instruction|rule|prompt|guideline|guardrail|assistant|agent|llm|bot|memor|profile|persona|everything you|"
    r"you (?:are|must|will) now|\bais?\b|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]",
    re.IGNORECASE,
)
"""One of these stands in whatever `_RULES` finds: looking for them first is a sixth of all that extraction costs less."""
_OPENS = re.compile(r"[\"“”「『«]")


def instructs_memory(text: str) -> bool:
    """Whether `text` tries to instruct the memory, or to lift the rules of whoever reads it."""
    return _found(text) is not None


def is_suspicious(turn: Turn, said: str) -> bool:
    """Whether `said`, a part of `turn`, is to be kept apart. What users ask of their own memory in their own words
    is theirs to ask; only what they pass on in quotation marks is not."""
    found = _found(said)
    if found is None or turn.kind != "turn" or turn.role != "user":
        return found is not None
    return _OPENS.search(said, 0, found.start() + 1) is not None


def _found(text: str) -> re.Match[str] | None:
    return _RULES.search(text, 0, MAX_CHARS) if _HINT.search(text, 0, MAX_CHARS) else None
