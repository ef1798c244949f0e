from __future__ import annotations

from lamina.atoms.builtin.judgement import Judgement, Speaker


def judge(sentence: str, speaker: Speaker, project: str) -> Judgement | None:
    del sentence, speaker, project
    return None
