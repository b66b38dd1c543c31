"""Dates outside English: what was named, where and when it was said, in five languages (P-21, P-22).

The phrases were written before the tables that read them.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.protocol.instant import parse
from memd.stages.dates import valid_from
from memd.stages.multilingual_dates import LANGUAGES, is_habit

AT = "2026-03-10T23:30:00+09:00"  # a Tuesday, still 14:30 in UTC

ZH = [
    ("昨天我们把数据库迁移到了新服务器。", "2026-03-09"),
    ("我前天见了安娜。", "2026-03-08"),
    ("今天下午三点我们改了部署脚本。", "2026-03-10"),
    ("明天我要去东京。", "2026-03-11"),
    ("三天前我换了编辑器。", "2026-03-07"),
    ("两周前我们开始使用 uv。", "2026-02-24"),
    ("10 天以前服务器停了。", "2026-02-28"),
    ("上周五我们发布了 2.0 版本。", "2026-03-06"),
    ("上个月我搬到了上海。", "2026-02-01"),
    ("上个月5号我们签了合同。", "2026-02-05"),
    ("去年我加入了这个团队。", "2025-01-01"),
    ("去年十月我们停用了旧接口。", "2025-10-01"),
    ("3月5日我们决定使用 Postgres。", "2026-03-05"),
    ("2024年5月7日我们搬家了。", "2024-05-07"),
    ("从2023年起我一直住在这里。", "2023-01-01"),
    ("下周一我们要开会。", "2026-03-16"),
    ("我星期五见了安娜。", "2026-03-06"),
    ("周五之前必须交报告。", ""),
    ("3月15日前完成迁移。", ""),
    ("我们每周二部署。", ""),
    ("过几天再说。", ""),
    ("请在3天内回复。", ""),
    ("我喜欢用制表符。", ""),
]
JA = [
    ("昨日、データベースを移行しました。", "2026-03-09"),
    ("一昨日アナに会いました。", "2026-03-08"),
    ("おととい引っ越した。", "2026-03-08"),
    ("今日の午後3時に設定を変えました。", "2026-03-10"),
    ("明日東京へ行きます。", "2026-03-11"),
    ("三日前にエディタを変えました。", "2026-03-07"),
    ("2週間前から uv を使っています。", "2026-02-24"),
    ("３か月前に入社しました。", "2025-12-10"),
    ("先週の金曜日にリリースしました。", "2026-03-06"),
    ("先月、大阪に引っ越しました。", "2026-02-01"),
    ("昨年チームに加わりました。", "2025-01-01"),
    ("昨年の10月に旧APIを止めました。", "2025-10-01"),
    ("3月5日に Postgres を使うと決めました。", "2026-03-05"),
    ("2024年5月7日に引っ越しました。", "2024-05-07"),
    ("2023年からここに住んでいます。", "2023-01-01"),
    ("来週の月曜日に会議があります。", "2026-03-16"),
    ("金曜日にアナに会いました。", "2026-03-06"),
    ("金曜日までに報告書を出してください。", ""),
    ("3月15日までに移行を終える。", ""),
    ("毎週火曜日にデプロイします。", ""),
    ("そのうちやります。", ""),
    ("3日以内に返事をください。", ""),
    ("タブのほうが好きです。", ""),
]
KO = [
    ("어제 데이터베이스를 옮겼습니다.", "2026-03-09"),
    ("그저께 아나를 만났어요.", "2026-03-08"),
    ("오늘 오후 3시에 설정을 바꿨다.", "2026-03-10"),
    ("내일 도쿄에 갑니다.", "2026-03-11"),
    ("3일 전에 편집기를 바꿨습니다.", "2026-03-07"),
    ("사흘 전에 서버가 멈췄다.", "2026-03-07"),
    ("2주 전부터 uv를 씁니다.", "2026-02-24"),
    ("세 달 전에 입사했습니다.", "2025-12-10"),
    ("지난주 금요일에 배포했습니다.", "2026-03-06"),
    ("지난 금요일에 릴리스했습니다.", "2026-03-06"),
    ("지난달에 부산으로 이사했습니다.", "2026-02-01"),
    ("작년에 팀에 합류했습니다.", "2025-01-01"),
    ("작년 10월에 옛 API를 껐습니다.", "2025-10-01"),
    ("3월 5일에 Postgres를 쓰기로 했습니다.", "2026-03-05"),
    ("2024년 5월 7일에 이사했습니다.", "2024-05-07"),
    ("2023년부터 여기 살고 있습니다.", "2023-01-01"),
    ("다음 주 월요일에 회의가 있습니다.", "2026-03-16"),
    ("금요일까지 보고서를 내야 합니다.", ""),
    ("3월 15일까지 이전을 마친다.", ""),
    ("매주 화요일에 배포합니다.", ""),
    ("나중에 할게요.", ""),
    ("3일 이내에 답해 주세요.", ""),
    ("탭을 더 좋아합니다.", ""),
]
AR = [
    ("أمس نقلنا قاعدة البيانات إلى الخادم الجديد.", "2026-03-09"),
    ("قابلت آنا أول أمس.", "2026-03-08"),
    ("اليوم في الساعة الثالثة غيرنا الإعدادات.", "2026-03-10"),
    ("سأسافر إلى طوكيو غدا.", "2026-03-11"),
    ("غيرت المحرر قبل ثلاثة أيام.", "2026-03-07"),
    ("توقف الخادم منذ 10 أيام.", "2026-02-28"),
    ("بدأنا استخدام uv قبل أسبوعين.", "2026-02-24"),
    ("انضممت إلى الفريق قبل ثلاثة أشهر.", "2025-12-10"),
    ("أصدرنا النسخة يوم الجمعة الماضي.", "2026-03-06"),
    ("انتقلت إلى القاهرة الشهر الماضي.", "2026-02-01"),
    ("انضممت إلى الشركة العام الماضي.", "2025-01-01"),
    ("في 5 مارس قررنا استخدام بوستجرس.", "2026-03-05"),
    ("انتقلنا في ٧ مايو ٢٠٢٤.", "2024-05-07"),
    ("أوقفنا الواجهة القديمة في أكتوبر 2025.", "2025-10-01"),
    ("أعيش هنا منذ عام 2023.", "2023-01-01"),
    ("لدينا اجتماع يوم الاثنين القادم.", "2026-03-16"),
    ("يجب تسليم التقرير قبل يوم الجمعة.", ""),
    ("سننهي النقل بحلول 15 مارس.", ""),
    ("ننشر كل يوم ثلاثاء.", ""),
    ("سأفعل ذلك قريبا.", ""),
    ("أفضل علامات الجدولة.", ""),
]
DE = [
    ("Gestern haben wir die Datenbank umgezogen.", "2026-03-09"),
    ("Vorgestern habe ich Anna getroffen.", "2026-03-08"),
    ("Heute Morgen um 5 Uhr ist der Server ausgefallen.", "2026-03-10"),
    ("Morgen fliege ich nach Tokio.", "2026-03-11"),
    ("Vor drei Tagen habe ich den Editor gewechselt.", "2026-03-07"),
    ("Wir nutzen uv seit zwei Wochen.", "2026-02-24"),
    ("Vor einem Monat bin ich umgezogen.", "2026-02-10"),
    ("Letzten Freitag haben wir 2.0 veröffentlicht.", "2026-03-06"),
    ("Am vergangenen Montag haben wir die Regel geändert.", "2026-03-09"),
    ("Letzten Monat bin ich nach Wien gezogen.", "2026-02-01"),
    ("Letztes Jahr bin ich zum Team gestoßen.", "2025-01-01"),
    ("Im Oktober letzten Jahres haben wir die alte API abgeschaltet.", "2025-10-01"),
    ("Am 5. März haben wir uns für Postgres entschieden.", "2026-03-05"),
    ("Am 07.05.2024 sind wir umgezogen.", "2024-05-07"),
    ("Ich wohne seit 2023 hier.", "2023-01-01"),
    ("Ich wohne seit Juni hier.", "2025-06-01"),
    ("Nächsten Montag haben wir eine Besprechung.", "2026-03-16"),
    ("In zwei Wochen werden wir umziehen.", "2026-03-24"),
    ("Ich habe Anna am Freitag getroffen.", "2026-03-06"),
    ("Der Bericht muss bis Freitag fertig sein.", ""),
    ("Die Frist endet am 15. März.", ""),
    ("Wir deployen jeden Dienstag.", ""),
    ("Am Morgen trinke ich Kaffee.", ""),
    ("Ich stehe um 5 Uhr auf.", ""),
    ("Ich mache das bald.", ""),
    ("Ich mag Tabulatoren lieber.", ""),
]


@pytest.mark.parametrize(
    ("tongue", "clause", "day"),
    [(tongue, *each) for tongue, told in {"zh": ZH, "ja": JA, "ko": KO, "ar": AR, "de": DE}.items() for each in told],
)
def test_a_date_is_resolved_where_it_was_said_in_every_language_P21_P22(tongue: str, clause: str, day: str) -> None:
    assert valid_from(clause, AT, tongue) == (f"{day}T00:00:00+09:00" if day else "")


@pytest.mark.parametrize(
    ("tongue", "clause", "expected"),
    [
        ("zh", "我们每周二开会。", True),
        ("zh", "从昨天开始每天备份。", False),
        ("ja", "毎晩バックアップを取る。", True),
        ("ja", "昨日から毎晩バックアップを取る。", False),
        ("ko", "매일 백업합니다.", True),
        ("ko", "어제부터 매일 백업합니다.", False),
        ("ar", "ننسخ كل يوم.", True),
        ("ar", "ننسخ كل يوم منذ أمس.", False),
        ("de", "Wir sichern jeden Abend.", True),
        ("de", "Seit gestern sichern wir jeden Abend.", False),
    ],
)
def test_a_habit_holds_from_a_date_only_where_it_says_since_when_P21(tongue: str, clause: str, expected: bool) -> None:
    assert is_habit(clause, tongue) is expected


@pytest.mark.parametrize("tongue", sorted(LANGUAGES))
@given(words=st.text(max_size=60), digits=st.integers(0, 99999))
@settings(max_examples=100, deadline=None)
def test_no_text_breaks_a_table(tongue: str, words: str, digits: int) -> None:
    for clause in (words, f"{digits}月{digits}日{words}", f"{digits}. März {digits}", f"قبل {digits} سنة {words}"):
        found = valid_from(clause, AT, tongue)
        assert not found or parse(found).tzinfo is not None
