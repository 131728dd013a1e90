"""Finds the numbers in claims and outputs, with the things that they count. Reads the summaries of test runners."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from agentwatch.evidence.shell import word_set

STATUSES = {
    "passed": r"\b(?:passed|passing|pass(?:es)?|succeeded|successful|success(?:es)?|green|ok|bestanden"
    r"|erfolgreich|grün|réussi(?:e?s)?|passés?|passent|pasad[oa]s|pasan|pasaron|superad[oa]s|aprobad[oa]s|exitos[oa]s"
    r"|passaram|passando|superati|groen|geslaagd|przeszł\w+|прош(?:л|ё)\w*|пройден\w*|успешн\w*)\b|通过|成功|合格|通過|통과|성공",
    "failed": r"\b(?:failed|failing|fail(?:s|ures?)?|broken|fehlgeschlagen\w*|fehlschläge|échecs?|échou(?:é|ée|és"
    r"|ées|ent)|mislukt|упало|fallos?|fallid[oa]s|fallaron|falhas?|falharam|falliti|упал\w*|провал\w*)\b|失败|失敗|실패",
    "skipped": r"\b(?:skipped|skips?|skipping|pending|ignored|todo|xfailed|xpassed|deselected|disabled|cancell?ed"
    r"|excluded|übersprungen|ignorés?|ignorées?|sautés?|désactivés?|omitid[oa]s|saltad[oa]s|ignorad[oa]s|saltati|ignorati"
    r"|pulad[oa]s|en attente|en espera|pendientes?|pendentes?|ausstehend|in attesa|pominięt\w+|overgeslagen"
    r"|пропущен\w*)\b|跳过|忽略|スキップ|건너뜀|건너뛰",
    "total": r"\b(?:total|gesamt|insgesamt|totale)\b",
}
_SUBJECTS = {
    "suites": r"\b(?:test[ -])?suites\b|测试套件",
    "files": r"\b(?:source |test )?(?:files?|dateien|datei|fichiers?|archivos?|arquivos?|файл\w*)\b|文件|ファイル|파일",
    "tests": r"\b(?:(?:unit[ -]?|new )?tests?(?:[ -]?cases?)?|examples?|specs?|runs?|scenarios?|cases|beispiele"
    r"|exemples|ejemplos|exemplos|esempi|testy|pruebas|essais|testes|тест\w*)\b|测试|用例|テスト|테스트",
    "errors": r"\b(?:errors?|error\(s\)|errored|fehler|erreurs?|errores|erros?|errori|ошиб\w*)\b|错误|エラー|오류",
    "warnings": r"\b(?:warnings?|warnung(?:en)?|avertissements?|advertencias?|avisos?|avvisi"
    r"|предупрежд\w*)\b|警告|경고",
    "issues": r"\b(?:issues?|problems?|probleme?s?|offen[sc]es?|findings?|violations?|complaints?|diagnostics"
    r"|remarques?|ofensas?|problemas?|beanstandung(?:en)?|befund|problemi|infractions?|meldung(?:en)?|hinweise"
    r"|differences?|differenze|differenz(?:en)?)\b|问题|問題|문제",
    "assertions": r"\b(?:assertions?|expect|expectations|aserciones|asserções|asserzioni|assertionen)\b|断言",
    "snapshots": r"\bsnapshots?\b|快照|スナップショット",
    "projects": r"\b(?:projects?|projekte?|projets?|proyectos?|projetos?|progetti)\b|项目|プロジェクト|프로젝트",
    "tasks": r"\b(?:tasks?|aufgaben|tâches|tareas|tarefas)\b|任务",
    "modules": r"\b(?:modules?|module[ns]?|módulos?|moduli)\b|模块",
}
_NONE = (
    r"\b(?:no|zero|none|without(?: any)?|kein(?:e[rnms]?)?|ohne|aucune?|sans|ning[uú]n[ao]?|sin|nessun[ao]?|senza"
    r"|nenhuma?|sem|без|нет|nothing|nichts|rien|nulla|nada|niente|niets|nic)\b|没有|无(?!法)|零(?=个)"
)
_NUMBER = (
    r"(?<![\w.#-])(?<!\d,)(?<![A-Za-z0-9]:)(?<!\btest )(?<!\bcase )(?<!\bstep )(?<!\bphase )"
    r"(?:\d{1,3}(?:[,.'\u202f]\d{3})+(?![\d%]|\.\d)|\d+(?![\d]|[.,]\d|[./:-]\d))"
)
_NUMERAL = re.compile(
    rf"(?P<percent>(?<![\w.])\d+(?:[.,]\d+)?)\s?%|(?P<part>(?<![\w.,#/-])\d[\d,]*)\s?(?:/|out of|of|von|sur|de|di"
    rf"|из)\s?(?P<whole>\d[\d,]*)(?![\d/:.-]\d|\w)|\bout of (?P<of>\d+)|(?P<n>{_NUMBER}(?!\s?[kKMG]?B\b))"
    rf"|(?P<none>{_NONE})",
    re.IGNORECASE,
)
_BREAK = re.compile(r"[,;|()（）、，；。]|\.(?=\s|\Z)|\s[-–—→]\s|…|\s(?:and|und|et|y|e)\s(?=\d|\Z)")
_LABELLED = re.compile(r"([^\W\d_]+(?: [^\W\d_]+)?)\s*[:=：\]]\s*\Z")
_SCOPE = re.compile(r"\W*(?:\[\w+\]\s*)?((?!test result)[^\W\d_]+(?: [^\W\d_]+)?)(?:: *|\s{2,})")
_HEAD = re.compile(r"\s*(?:[^\s]+\s+){0,2}[^\s]+")
_FILLER = re.compile(
    r"\s*(?:(?:(?:have|has|are|were|is|was|all|now|be|been|sind|wurden|ont|été|tous|toutes|de|alle|foram)\b|全部|都|均|已|个"
    r"|件|개)\s*)*"
)
_ADJACENT = re.compile(r"([^\W\d_]+)[ \t]{1,2}\Z")
TIME = re.compile(
    r"\(?\b(?:in|after|took|nach|en)?\s*\d+(?:[.,:]\d+)*\s*(?:ms|s|sec|secs|seconds|sekunden|secondes|segundos|秒|m"
    r"|min|minutes)\b(?: *\d+\.\d+s\b)?\)?",
    re.IGNORECASE,
)


_Find = Callable[[str, str, int], re.Match[str] | None]


class Quantity(NamedTuple):
    """A number in a text. In `12 tests passed`, the subject is `tests` and the status is `passed`. Each is "" if the
    text does not say it. `near` are the words around the number."""

    number: str
    subject: str = ""
    status: str = ""
    near: str = ""

    @property
    def words(self) -> str:
        number = f"{int(self.number):,}" if self.number.isdigit() else self.number
        return " ".join(filter(None, (number, self.subject, self.status)))

    @property
    def is_fault(self) -> bool:
        return self.status == "failed" or self.subject in ("errors", "issues")

    @property
    def is_failure(self) -> bool:
        return self.is_fault and self.number not in ("0", "0%")


def parse_number(digits: str) -> int:
    """Read all digits of a text as one number. A text without digits, such as `none`, is 0."""
    kept = re.sub(r"\D", "", digits)
    return int(kept) if kept else 0


def _find_name(table: dict[str, str], text: str, find: _Find = re.search) -> tuple[str, int]:
    """Return the first name whose pattern matches a text, and the end of the match. Return "" and 0 if none matches."""
    matches = ((name, find(words, text, re.IGNORECASE)) for name, words in table.items())
    return next(((name, match.end()) for name, match in matches if match), ("", 0))


def _read_nouns_after(text: str) -> tuple[str, str, int]:
    """Read the words after a number. Return its subject, its status, and the place where these words end."""
    head = _HEAD.match(text)
    subject, end = _find_name(_SUBJECTS, head[0]) if head else ("", 0)
    if subject:
        status, last = _find_name(STATUSES, text[:60])
        return subject, status, max(end, last)
    rest = _FILLER.sub("", text, count=1)
    status, last = _find_name(STATUSES, rest, re.match)
    return "", status, last + len(text) - len(rest) if status else 0


@lru_cache(4096)
def read_quantities(text: str, *, claimed: bool = True) -> tuple[tuple[Quantity, ...], str]:
    """Return the numbers of a text with subject and status, and the rest of the text. The text is a claim or a line of
    an output. A subject at the beginning belongs to all numbers. In a claim, it belongs only to those with a status."""
    text = TIME.sub(" ", text.replace("(s)", "s"))
    marks, rest, quantities, at = list(_NUMERAL.finditer(text)), list(text), list[Quantity](), 0
    led = _SCOPE.match(text)
    scope = _find_name(_SUBJECTS, led[1])[0] if led else ""
    for place, mark in enumerate(marks):
        last = marks[place + 1].start() if place + 1 < len(marks) else len(text)
        after = _BREAK.split(text[mark.end() : last], maxsplit=1)[0]
        before = _BREAK.split(text[at : mark.start()])[-1]
        subject, status, end = _read_nouns_after(after)
        begin, at, near = mark.start(), mark.end(), f"{before[-40:]} {after[:40]}"
        if mark["none"] is not None:
            near = after[:40]
            if not (status or subject):
                continue
        elif label := _LABELLED.search(before) or _ADJACENT.search(before):
            names = _find_name(_SUBJECTS, label[1])[0], _find_name(STATUSES, label[1])[0]
            begin -= len(before) - label.start() if any(names) else 0
            subject, status = subject or names[0], status or names[1]
        subject = subject or (scope if mark["none"] is None and (status or not claimed) else "")
        rest[begin : mark.end() + end] = " " * (mark.end() + end - begin)
        if mark["percent"]:
            quantities.append(Quantity(f"{mark['percent'].replace(',', '.')}%", "coverage", status, near))
            continue
        subject, status = (subject or "tests", "total") if mark["of"] else (subject, status)
        digits = mark["part"] or mark["of"] or mark["n"] or ""
        quantities.append(Quantity(str(parse_number(digits)), subject, status, near))
        if mark["whole"]:
            quantities.append(Quantity(str(parse_number(mark["whole"])), subject, "total" if subject else "", near))
    return tuple(quantities), "".join(rest)


# Results of runners


class Counts(NamedTuple):
    """The numbers of tests in a summary, each None if it is not printed. `failed` counts failures and errors."""

    total: int | None = None
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None

    @property
    def words(self) -> str:
        pairs = ((self.passed, "passed"), (self.failed or None, "failed"), (self.skipped or None, "skipped"))
        told = [f"{count:,} {word}" for count, word in pairs if count is not None]
        return ", ".join(told) or (f"{self.total:,} tests" if self.total is not None else "none failed")


_FRAME = word_set(
    "in with and test tests result results ok run ran total finished measured filtered out warnings warning assertions"
    " containing time took s ms m h sec secs second seconds min info summary duration executed done expectations flaky"
    " obsolete rerun all passed failed failing subtests unexpected expected listed below skipped tap cases from"
    " passing ended doctests doctest no failures failure real user sys slow fastest the were of elapsed at completed"
    " success succeeded error you have expect calls pass fail insgesamt found"
)
# Lines that a runner prints for each of several modules. Their numbers are added.
_ADDING = re.compile(r"test result: |\w+!\s+[-:]|\[\w+\] Tests run: |Tests:?\s+\d+ (?:passed|failed|skipped)\b")
_DLL = re.compile(r", (?:Duration|Dauer|Durée|Duración): .*| - \S+\.dll.*")
_ALL_WELL = re.compile(r"\W*(?:OK\b(?!,)|All tests passed|SUCCESS)")
# Lines of a summary that do not count tests, and lines of single tests.
_NO_COUNT = re.compile(r"(?:Un)?expected \w+: +0\b|Timeout: +0\b|(?:not )?ok \d+ ", re.IGNORECASE)
_PACKAGES = re.compile(r"^(?:(ok) {2}\t(?!.*\[no tests? )|(FAIL)\t|--- (FAIL):|(panic): )", re.MULTILINE)
_LONGEST_LINE = 300
_COUNTED = re.compile("|".join([*STATUSES.values(), _SUBJECTS["tests"], _SUBJECTS["errors"]]), re.IGNORECASE)


def _output_lines(output: str) -> Iterator[str]:
    for printed in output.replace("\r", "\n").splitlines():
        line = _DLL.sub("", printed.strip())
        if len(line) <= _LONGEST_LINE and not _NO_COUNT.match(line):
            yield line


@lru_cache(256)
def quantities_in(output: str) -> frozenset[Quantity]:
    """Return all numbers in an output, with subject and status."""
    return frozenset(one for line in _output_lines(output) for one in read_quantities(line, claimed=False)[0])


@lru_cache(256)
def counts_in(output: str) -> Counts | None:
    """Return the numbers of tests in an output's summary. Return None if there is none, or if several differ."""
    groups: list[dict[str, int]] = []
    adding = True
    for line in _output_lines(output):
        quantities, rest = read_quantities(line, claimed=False) if _COUNTED.search(line) else ((), line)
        values: dict[str, int] = {}
        for one in quantities:
            is_error = one.subject == "errors" and bool(groups or any(two.status for two in quantities))
            if one.number.isdigit() and (is_error or (one.subject in ("", "tests") and (one.subject or one.status))):
                key = "failed" if is_error else one.status or "total"
                values[key] = values.get(key, 0) + int(one.number)
        if (groups or values) and _ALL_WELL.match(line) and "passed" not in values:
            values.setdefault("failed", 0)
        words = {word.casefold().rstrip(".'/-") for word in re.findall(r"[^\W\d_][\w.'/-]*", rest)} - _FRAME
        if not values or not all(_find_name(STATUSES, word)[0] for word in words):
            continue
        adding = adding and _ADDING.match(line) is not None
        if not groups or adding or any(groups[-1].get(key, count) != count for key, count in values.items()):
            groups.append({})
        groups[-1] |= values
    made = [_complete_counts(**one) for one in groups]
    if made and adding:
        return Counts(*(sum(one or 0 for one in values) for values in zip(*made, strict=True)))
    if made:
        return made[0] if len(made) == 1 else None
    packages = [match[1] for match in _PACKAGES.finditer(output)]
    return Counts(failed=packages.count(None)) if packages else None


def _complete_counts(
    total: int | None = None, passed: int | None = None, failed: int | None = None, skipped: int = 0
) -> Counts:
    """Compute the missing numbers of a summary from its other numbers. Failures that are not listed are 0."""
    others = (failed or 0) + skipped
    if total is None:
        passed = passed or 0
        return Counts(passed + others, passed, failed or 0, skipped)
    if passed is None and (total == 0 or failed is not None or skipped):
        passed = max(total - others, 0)
    return Counts(total, passed, failed if passed is None else failed or 0, skipped)
