"""Whether what somebody says is about the people and animals around them. Pure."""

from __future__ import annotations

import re

_OTHERS = re.compile(
    r"\b(?:my|our)\s(?:\w+\s){0,2}(?:wife|husband|partner|spouse|girlfriend|boyfriend|fianc[eé]e?|mother|father|mom|mum|"
    r"dad|parents?|sisters?|brothers?|siblings?|sons?|daughters?|kids?|child(?:ren)?|grand(?:ma|pa|mother|father)|aunt|"
    r"uncle|cousins?|nieces?|nephews?|friends?|colleagues?|boss|manager|teammates?|roommates?|neighbou?rs?|dogs?|cats?|"
    r"pets?|puppy|kitten)\b"
    r"|(?:우리|제|내)\s?(?:아내|남편|엄마|아빠|어머니|아버지|부모님|누나|언니|형|오빠|동생|여동생|남동생|딸|아들|아이|친구|동료|상사|강아지|고양이)"
    r"|我(?:的|们的|家)?(?:老婆|妻子|丈夫|老公|女朋友|男朋友|妈妈|爸爸|母亲|父亲|父母|姐姐|妹妹|哥哥|弟弟|女儿|儿子|孩子|朋友|同事|老板|狗|猫)"
    r"|(?:私|僕|俺|うち)の(?:妻|夫|母|父|両親|姉|妹|兄|弟|娘|息子|子供|子ども|友人|友達|同僚|上司|犬|猫)",
    re.IGNORECASE,
)


def is_of_others(text: str) -> bool:
    """Is it about somebody whom the speaker names as theirs, in English, Korean, Chinese or Japanese?"""
    return _OTHERS.search(text, 0, 400) is not None
