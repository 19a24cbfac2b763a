//! The columns of people, auctions and bids.
//!
//! Every value is a function of the event's number (and time), so a column that nobody reads is
//! simply not made.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringViewBuilder, TimestampMicrosecondArray};

use crate::nexmark::timeline::{EPOCH_EVENTS, Event};
use crate::random::RandomField;

const FIRST_ID: i64 = 1000;
/// Bids and auctions refer to the latest people and auctions, and to a few that are still to come.
const ACTIVE_PEOPLE: i64 = 200;
const OPEN_AUCTIONS: i64 = 100;
const LEAD: i64 = 10;

const FIRST_NAMES: [&str; 12] =
    ["Ada", "Bruno", "Chen", "Dmitri", "Elif", "Farah", "Goran", "Hana", "Ines", "Jonas", "Kofi", "Lucía"];
const LAST_NAMES: [&str; 11] = [
    "Almeida", "Bauer", "Castro", "Dubois", "Eriksen", "Fischer", "Gruber", "Haddad", "Ito", "O'Neil",
    "Petrov",
];
const CITIES: [(&str, &str); 10] = [
    ("Phoenix", "AZ"),
    ("Los Angeles", "CA"),
    ("San Francisco", "CA"),
    ("Boise", "ID"),
    ("Portland", "OR"),
    ("Bend", "OR"),
    ("Kent", "WA"),
    ("Redmond", "WA"),
    ("Seattle", "WA"),
    ("Cheyenne", "WY"),
];
const HOT_CHANNELS: [&str; 4] = ["Google", "facebook", "Baidu", "APPLE"];
/// Channels that have no name of their own come before the hot ones.
const PLAIN_CHANNELS: i64 = 1000;
const WORDS: i64 = 36i64.pow(5);

/// The three streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    Person,
    Auction,
    Bid,
}

impl Table {
    pub(super) const WORDS: &[(&str, Self)] =
        &[("person", Self::Person), ("auction", Self::Auction), ("bid", Self::Bid)];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Auction => "auction",
            Self::Bid => "bid",
        }
    }

    /// Whether an event is one of this stream.
    pub(super) fn has(self, event: &Event) -> bool {
        match event.number % EPOCH_EVENTS {
            0 => self == Self::Person,
            1..=3 => self == Self::Auction,
            _ => self == Self::Bid,
        }
    }

    pub(super) fn columns(self) -> &'static [ColumnSpec] {
        match self {
            Self::Person => PERSON,
            Self::Auction => AUCTION,
            Self::Bid => BID,
        }
    }
}

/// A column that can be made.
#[derive(Debug)]
pub(super) struct ColumnSpec {
    pub(super) name: &'static str,
    pub(super) make: Make,
}

/// How, and thereby of which type.
#[derive(Debug)]
pub(super) enum Make {
    BigInt(fn(&Records, &Event) -> i64),
    /// Milliseconds since 1970.
    Timestamp(fn(&Records, &Event) -> i64),
    /// Appends to the text; false means NULL.
    Text(fn(&Records, &Event, &mut String) -> bool),
}

const fn column(name: &'static str, make: Make) -> ColumnSpec {
    ColumnSpec { name, make }
}

const PERSON: &[ColumnSpec] = &[
    column("id", Make::BigInt(|_, event| FIRST_ID + last_person(event))),
    column("name", Make::Text(Records::person_name)),
    column("email_address", Make::Text(Records::email_address)),
    column("credit_card", Make::Text(Records::credit_card)),
    column("city", Make::Text(|records, event, out| put(out, records.city(event).0))),
    column("state", Make::Text(|records, event, out| put(out, records.city(event).1))),
    DATE_TIME,
    EXTRA,
];

const AUCTION: &[ColumnSpec] = &[
    column("id", Make::BigInt(|_, event| FIRST_ID + last_auction(event))),
    column("item_name", Make::Text(|records, event, out| records.words(event, &[1, 2], "", out))),
    column("description", Make::Text(|records, event, out| records.words(event, &[3, 4], " ", out))),
    column("initial_bid", Make::BigInt(|records, event| records.price(1, event))),
    column("reserve", Make::BigInt(|records, event| records.price(1, event) + records.price(2, event))),
    DATE_TIME,
    column("expires", Make::Timestamp(Records::expires_ms)),
    column("seller", Make::BigInt(Records::seller)),
    column("category", Make::BigInt(|records, event| 10 + records.category.below(event.number, 5))),
    EXTRA,
];

const BID: &[ColumnSpec] = &[
    column("auction", Make::BigInt(Records::auction)),
    column("bidder", Make::BigInt(Records::bidder)),
    column("price", Make::BigInt(Records::bid_price)),
    column("channel", Make::Text(Records::channel_name)),
    column("url", Make::Text(|records, event, out| put(out, &records.urls[records.channel(event) as usize]))),
    DATE_TIME,
    EXTRA,
];

const DATE_TIME: ColumnSpec = column("date_time", Make::Timestamp(|_, event| event.time_ms));
const EXTRA: ColumnSpec = column("extra", Make::Text(Records::extra));

fn epoch(event: &Event) -> i64 {
    event.number / EPOCH_EVENTS
}

/// Number of the person of this epoch, who exists from its first event on.
fn last_person(event: &Event) -> i64 {
    epoch(event)
}

/// Number of the latest auction; -1 before the first.
fn last_auction(event: &Event) -> i64 {
    epoch(event) * 3 + (event.number % EPOCH_EVENTS).min(3) - 1
}

/// The person that most people deal with for now.
fn hot_person(event: &Event) -> i64 {
    last_person(event) / 100 * 100
}

fn put(out: &mut String, text: &str) -> bool {
    out.push_str(text);
    true
}

/// Appends word number `word` of all five-letter words.
fn put_word(out: &mut String, mut word: i64) {
    const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut letters = [0u8; 5];
    for letter in &mut letters {
        *letter = LETTERS[(word % 36) as usize];
        word /= 36;
    }
    out.push_str(std::str::from_utf8(&letters).unwrap_or_default());
}

/// Appends a number with at least `width` digits.
fn put_number(out: &mut String, mut number: i64, width: usize) {
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    while number > 0 || digits.len() - start < width {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.push_str(std::str::from_utf8(&digits[start..]).unwrap_or_default());
}

/// Makes values from events.
#[derive(Debug)]
pub(super) struct Records {
    /// For how long auctions are open at the longest.
    auction_ms_max: i64,
    is_hot_seller: RandomField,
    cold_seller: RandomField,
    is_hot_bidder: RandomField,
    cold_bidder: RandomField,
    is_hot_auction: RandomField,
    cold_auction: RandomField,
    /// Of bids, of initial bids, and of what the reserve adds: magnitude, leading digits, the rest.
    prices: [[RandomField; 3]; 3],
    duration: RandomField,
    category: RandomField,
    word: [RandomField; 6],
    word_count: RandomField,
    oddity: RandomField,
    is_hot_channel: RandomField,
    cold_channel: RandomField,
    hot_channel: RandomField,
    card: [RandomField; 4],
    first_name: RandomField,
    last_name: RandomField,
    city: RandomField,
    /// By channel: where an item is shown does not depend on the bid.
    urls: Vec<String>,
}

impl Records {
    pub(super) fn new(seed: u64, gap_ms: i64) -> Self {
        let field = |number| RandomField::new(seed, number);
        let price = |first| [field(first), field(first + 1), field(first + 2)];
        let open_ms = OPEN_AUCTIONS * EPOCH_EVENTS / 3 * gap_ms;
        Self {
            auction_ms_max: 2 * open_ms.max(1),
            is_hot_seller: field(10),
            cold_seller: field(11),
            is_hot_bidder: field(12),
            cold_bidder: field(13),
            is_hot_auction: field(14),
            cold_auction: field(15),
            prices: [price(20), price(23), price(26)],
            duration: field(30),
            category: field(31),
            word: [field(40), field(41), field(42), field(43), field(44), field(45)],
            word_count: field(50),
            oddity: field(51),
            is_hot_channel: field(60),
            cold_channel: field(61),
            hot_channel: field(62),
            card: [field(70), field(71), field(72), field(73)],
            first_name: field(80),
            last_name: field(81),
            city: field(82),
            urls: urls(seed),
        }
    }

    /// The array of one column.
    pub(super) fn array(&self, make: &Make, events: &[Event]) -> ArrayRef {
        match make {
            Make::BigInt(value) => {
                Arc::new(Int64Array::from_iter_values(events.iter().map(|event| value(self, event))))
            }
            Make::Timestamp(ms) => Arc::new(TimestampMicrosecondArray::from_iter_values(
                events.iter().map(|event| ms(self, event) * 1000),
            )),
            Make::Text(append) => {
                let mut builder = StringViewBuilder::with_capacity(events.len());
                let mut text = String::new();
                for event in events {
                    text.clear();
                    builder.append_option(append(self, event, &mut text).then_some(text.as_str()));
                }
                Arc::new(builder.finish())
            }
        }
    }

    fn person_name(&self, event: &Event, out: &mut String) -> bool {
        out.push_str(pick(self.first_name, event, &FIRST_NAMES));
        out.push(' ');
        put(out, pick(self.last_name, event, &LAST_NAMES))
    }

    fn email_address(&self, event: &Event, out: &mut String) -> bool {
        self.words(event, &[1, 2], "@", out);
        put(out, ".test")
    }

    fn credit_card(&self, event: &Event, out: &mut String) -> bool {
        for (idx, field) in self.card.iter().enumerate() {
            out.push_str(if idx > 0 { " " } else { "" });
            put_number(out, field.below(event.number, 10_000), 4);
        }
        true
    }

    fn city(&self, event: &Event) -> (&'static str, &'static str) {
        pick(self.city, event, &CITIES)
    }

    fn words(&self, event: &Event, fields: &[usize], separator: &str, out: &mut String) -> bool {
        for (idx, field) in fields.iter().enumerate() {
            out.push_str(if idx > 0 { separator } else { "" });
            put_word(out, self.word[*field].below(event.number, WORDS));
        }
        true
    }

    /// Mostly words; now and then NULL, nothing, or characters that need care.
    fn extra(&self, event: &Event, out: &mut String) -> bool {
        if event.is_late {
            return put(out, "LATE");
        }
        match self.oddity.below(event.number, 1000) {
            0..10 => return false,
            10..15 => {
                out.push_str("quote \" back\\slash é漢😀 ");
                put_word(out, self.word[0].below(event.number, WORDS));
            }
            15..20 => {}
            _ => {
                let count = self.word_count.below(event.number, 6) as usize + 1;
                for field in &self.word[..count] {
                    put_word(out, field.below(event.number, WORDS));
                }
            }
        }
        true
    }

    /// From 100 to 99,999,999, each order of magnitude as often as the others.
    fn price(&self, which: usize, event: &Event) -> i64 {
        const POWERS: [i64; 6] = [1, 10, 100, 1000, 10_000, 100_000];
        let [magnitude, leading, rest] = self.prices[which];
        let unit = pick(magnitude, event, &POWERS);
        (100 + leading.below(event.number, 900)) * unit + rest.below(event.number, unit)
    }

    /// A late bid that is not dropped wins its window, so that the mistake shows.
    fn bid_price(&self, event: &Event) -> i64 {
        if event.is_late { 100_000_000 + event.number } else { self.price(0, event) }
    }

    fn expires_ms(&self, event: &Event) -> i64 {
        event.time_ms + 1 + self.duration.below(event.number, self.auction_ms_max)
    }

    fn seller(&self, event: &Event) -> i64 {
        let is_hot = self.is_hot_seller.below(event.number, 4) > 0;
        FIRST_ID + if is_hot { hot_person(event) } else { some_person(self.cold_seller, event) }
    }

    fn bidder(&self, event: &Event) -> i64 {
        let is_hot = self.is_hot_bidder.below(event.number, 4) > 0;
        FIRST_ID + if is_hot { hot_person(event) + 1 } else { some_person(self.cold_bidder, event) }
    }

    fn auction(&self, event: &Event) -> i64 {
        let last = last_auction(event).max(0);
        if self.is_hot_auction.below(event.number, 2) > 0 {
            return FIRST_ID + last / 100 * 100;
        }
        let first = (last - OPEN_AUCTIONS).max(0);
        FIRST_ID + first + self.cold_auction.below(event.number, last - first + 1 + LEAD)
    }

    fn hot_channel(&self, event: &Event) -> Option<i64> {
        let is_hot = self.is_hot_channel.below(event.number, 2) > 0;
        is_hot.then(|| self.hot_channel.below(event.number, HOT_CHANNELS.len() as i64))
    }

    fn channel(&self, event: &Event) -> i64 {
        match self.hot_channel(event) {
            Some(hot) => PLAIN_CHANNELS + hot,
            None => self.cold_channel.below(event.number, PLAIN_CHANNELS),
        }
    }

    fn channel_name(&self, event: &Event, out: &mut String) -> bool {
        if let Some(hot) = self.hot_channel(event) {
            return put(out, HOT_CHANNELS[hot as usize]);
        }
        out.push_str("channel-");
        put_number(out, self.cold_channel.below(event.number, PLAIN_CHANNELS), 1);
        true
    }
}

fn pick<T: Copy>(field: RandomField, event: &Event, values: &[T]) -> T {
    values[field.below(event.number, values.len() as i64) as usize]
}

/// One of the latest people, or one of a few who are still to come.
fn some_person(field: RandomField, event: &Event) -> i64 {
    let last = last_person(event);
    let first = (last - ACTIVE_PEOPLE).max(0);
    first + field.below(event.number, last - first + 1 + LEAD)
}

/// Some have too few folders, some the channel where a query does not look for it.
fn urls(seed: u64) -> Vec<String> {
    let words = [90, 91, 92].map(|field| RandomField::new(seed, field));
    let form = RandomField::new(seed, 95);
    let channel_id = RandomField::new(seed, 96);
    let url = |channel: i64| {
        let form = form.below(channel, 100);
        let mut url = "https://www.nexmark.test/".to_owned();
        put_word(&mut url, words[0].below(channel, WORDS));
        if form < 5 {
            return url;
        }
        for word in &words[1..] {
            url.push('/');
            put_word(&mut url, word.below(channel, WORDS));
        }
        url.push_str("/item.htm?");
        let id = channel_id.below(channel, 1 << 31);
        if form < 8 {
            url.push_str("channel_id=");
            put_number(&mut url, id, 1);
            return url;
        }
        url.push_str("query=1");
        if form >= 18 {
            url.push_str("&channel_id=");
            put_number(&mut url, id, 1);
        }
        url.push_str(if form % 7 == 0 { "&ref=x" } else { "" });
        url
    };
    (0..PLAIN_CHANNELS + HOT_CHANNELS.len() as i64).map(url).collect()
}
