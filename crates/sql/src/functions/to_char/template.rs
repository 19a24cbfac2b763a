//! PostgreSQL's date and time templates: text to a list of pieces.
//!
//! Template words are found longest first, as PostgreSQL does. `FM` before a word drops its padding,
//! `TH` or `th` behind one adds the ordinal ending, text in double quotes stands for itself, and so
//! does everything else.
//!
//! See <https://www.postgresql.org/docs/15/functions-formatting.html>.

/// How the letters of a name are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Upper,
    Capital,
    Lower,
}

/// What a template word stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Hour12,
    Hour24,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    /// First digits of the fraction of a second.
    Fraction(u32),
    SecondOfDay,
    /// `AM`, and with dots `A.M.`.
    HalfDay {
        case: Case,
        dots: bool,
    },
    /// `AD`, and with dots `A.D.`.
    Era {
        case: Case,
        dots: bool,
    },
    YearWithComma,
    /// Last digits of the year; 4: all of it.
    Year(u32),
    IsoYear(u32),
    Month,
    MonthName(Case),
    MonthShort(Case),
    MonthRoman(Case),
    Day,
    DayName(Case),
    DayShort(Case),
    DayOfYear,
    IsoDayOfYear,
    DayOfWeek,
    IsoDayOfWeek,
    WeekOfMonth,
    WeekOfYear,
    IsoWeek,
    Century,
    Julian,
    Quarter,
    ZoneName(Case),
    ZoneHour,
    ZoneMinute,
    ZoneOffset,
}

impl Field {
    /// Microseconds in which the field stays as it is, at least; its boundaries are multiples.
    fn granule(self) -> i64 {
        match self {
            Self::Microsecond | Self::Fraction(_) => 1,
            Self::Millisecond => 1_000,
            Self::Second | Self::SecondOfDay => 1_000_000,
            Self::Minute | Self::ZoneName(_) | Self::ZoneHour | Self::ZoneMinute | Self::ZoneOffset => {
                60_000_000
            }
            Self::Hour12 | Self::Hour24 | Self::HalfDay { .. } => 3_600_000_000,
            Self::Era { .. }
            | Self::YearWithComma
            | Self::Year(_)
            | Self::IsoYear(_)
            | Self::Month
            | Self::MonthName(_)
            | Self::MonthShort(_)
            | Self::MonthRoman(_)
            | Self::Day
            | Self::DayName(_)
            | Self::DayShort(_)
            | Self::DayOfYear
            | Self::IsoDayOfYear
            | Self::DayOfWeek
            | Self::IsoDayOfWeek
            | Self::WeekOfMonth
            | Self::WeekOfYear
            | Self::IsoWeek
            | Self::Century
            | Self::Julian
            | Self::Quarter => 86_400_000_000,
        }
    }
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Field {
        field: Field,
        /// `FM`: no padding.
        fill: bool,
        ordinal: Option<Case>,
    },
}

/// A template, ready to be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    pub(super) pieces: Vec<Piece>,
    /// All times between two multiples of this many microseconds (of local time) give one text.
    pub(super) granule: i64,
}

/// Template words of which one begins with another stand longest first.
const WORDS: &[(&str, Field)] = &[
    ("A.D.", Field::Era { case: Case::Upper, dots: true }),
    ("A.M.", Field::HalfDay { case: Case::Upper, dots: true }),
    ("AD", Field::Era { case: Case::Upper, dots: false }),
    ("AM", Field::HalfDay { case: Case::Upper, dots: false }),
    ("B.C.", Field::Era { case: Case::Upper, dots: true }),
    ("BC", Field::Era { case: Case::Upper, dots: false }),
    ("CC", Field::Century),
    ("DAY", Field::DayName(Case::Upper)),
    ("DDD", Field::DayOfYear),
    ("DD", Field::Day),
    ("DY", Field::DayShort(Case::Upper)),
    ("Day", Field::DayName(Case::Capital)),
    ("Dy", Field::DayShort(Case::Capital)),
    ("D", Field::DayOfWeek),
    ("FF1", Field::Fraction(1)),
    ("FF2", Field::Fraction(2)),
    ("FF3", Field::Fraction(3)),
    ("FF4", Field::Fraction(4)),
    ("FF5", Field::Fraction(5)),
    ("FF6", Field::Fraction(6)),
    ("HH24", Field::Hour24),
    ("HH12", Field::Hour12),
    ("HH", Field::Hour12),
    ("IDDD", Field::IsoDayOfYear),
    ("ID", Field::IsoDayOfWeek),
    ("IW", Field::IsoWeek),
    ("IYYY", Field::IsoYear(4)),
    ("IYY", Field::IsoYear(3)),
    ("IY", Field::IsoYear(2)),
    ("I", Field::IsoYear(1)),
    ("J", Field::Julian),
    ("MI", Field::Minute),
    ("MM", Field::Month),
    ("MONTH", Field::MonthName(Case::Upper)),
    ("MON", Field::MonthShort(Case::Upper)),
    ("MS", Field::Millisecond),
    ("Month", Field::MonthName(Case::Capital)),
    ("Mon", Field::MonthShort(Case::Capital)),
    ("OF", Field::ZoneOffset),
    ("P.M.", Field::HalfDay { case: Case::Upper, dots: true }),
    ("PM", Field::HalfDay { case: Case::Upper, dots: false }),
    ("Q", Field::Quarter),
    ("RM", Field::MonthRoman(Case::Upper)),
    ("SSSSS", Field::SecondOfDay),
    ("SSSS", Field::SecondOfDay),
    ("SS", Field::Second),
    ("TZH", Field::ZoneHour),
    ("TZM", Field::ZoneMinute),
    ("TZ", Field::ZoneName(Case::Upper)),
    ("US", Field::Microsecond),
    ("WW", Field::WeekOfYear),
    ("W", Field::WeekOfMonth),
    ("Y,YYY", Field::YearWithComma),
    ("YYYY", Field::Year(4)),
    ("YYY", Field::Year(3)),
    ("YY", Field::Year(2)),
    ("Y", Field::Year(1)),
];

/// The word a text begins with, in capitals, in small letters, or as a capitalised name.
fn word(text: &str) -> Option<(usize, Field)> {
    let begins = |word: &str| text.starts_with(word);
    let exact = WORDS.iter().find(|(word, _)| begins(word));
    if let Some((word, field)) = exact {
        return Some((word.len(), *field));
    }
    let small = WORDS.iter().find(|(word, _)| {
        let all_upper = !word.chars().any(|char| char.is_ascii_lowercase());
        all_upper && text.get(..word.len()).is_some_and(|start| start == word.to_ascii_lowercase())
    });
    small.map(|(word, field)| (word.len(), in_lower_case(*field)))
}

fn in_lower_case(field: Field) -> Field {
    match field {
        Field::HalfDay { dots, .. } => Field::HalfDay { case: Case::Lower, dots },
        Field::Era { dots, .. } => Field::Era { case: Case::Lower, dots },
        Field::MonthName(_) => Field::MonthName(Case::Lower),
        Field::MonthShort(_) => Field::MonthShort(Case::Lower),
        Field::MonthRoman(_) => Field::MonthRoman(Case::Lower),
        Field::DayName(_) => Field::DayName(Case::Lower),
        Field::DayShort(_) => Field::DayShort(Case::Lower),
        Field::ZoneName(_) => Field::ZoneName(Case::Lower),
        other => other,
    }
}

impl Template {
    pub(super) fn parse(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if let Some(after) = prefixed(rest) {
                let fill = rest.starts_with("FM") || rest.starts_with("fm");
                let Some((length, field)) = word(after) else {
                    rest = after;
                    continue;
                };
                let (ordinal, after) = ordinal(&after[length..]);
                flush(&mut literal, &mut pieces);
                pieces.push(Piece::Field { field, fill, ordinal });
                rest = after;
            } else if let Some((length, field)) = word(rest) {
                let (ordinal, after) = ordinal(&rest[length..]);
                flush(&mut literal, &mut pieces);
                pieces.push(Piece::Field { field, fill: false, ordinal });
                rest = after;
            } else if first == '"' {
                rest = quoted(&rest[1..], &mut literal);
            } else if rest.starts_with("\\\"") {
                literal.push('"');
                rest = &rest[2..];
            } else {
                literal.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        flush(&mut literal, &mut pieces);
        let granules = pieces.iter().map(|piece| match piece {
            Piece::Text(_) => 86_400_000_000,
            Piece::Field { field, .. } => field.granule(),
        });
        let granule = granules.min().unwrap_or(86_400_000_000);
        Self { pieces, granule }
    }
}

/// What follows `FM`, `TM` (names in the language of the server, which is English) or `FX`.
fn prefixed(text: &str) -> Option<&str> {
    ["FM", "fm", "TM", "tm", "FX", "fx"].iter().find_map(|prefix| text.strip_prefix(prefix))
}

fn ordinal(text: &str) -> (Option<Case>, &str) {
    if let Some(rest) = text.strip_prefix("TH") {
        (Some(Case::Upper), rest)
    } else if let Some(rest) = text.strip_prefix("th") {
        (Some(Case::Lower), rest)
    } else {
        (None, text)
    }
}

/// Copies up to the closing quote; a backslash takes the next character as it is.
fn quoted<'a>(text: &'a str, literal: &mut String) -> &'a str {
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return &text[at + 1..],
            '\\' => literal.extend(chars.next().map(|(_, escaped)| escaped)),
            _ => literal.push(char),
        }
    }
    ""
}

fn flush(literal: &mut String, pieces: &mut Vec<Piece>) {
    if !literal.is_empty() {
        pieces.push(Piece::Text(std::mem::take(literal)));
    }
}
