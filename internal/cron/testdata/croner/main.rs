// Prints ../croner.txt: what croner makes of cron expressions, built as Zizq
// builds it (seconds optional, all else left alone). cargo run --release > ../croner.txt
use chrono::{DateTime, LocalResult, NaiveDateTime, TimeZone};
use chrono_tz::Tz;
use croner::{parser::{CronParser, Seconds}, Cron, JobType};
use std::collections::BTreeSet;

// Where the reading begins: wall time and zone. The later ones lie before a
// change of the clocks.
const STARTS: &[(&str, &str)] = &[
    ("2026-03-01 10:02:03", "UTC"),
    ("2027-12-30 23:59:30", "Asia/Kathmandu"),
    ("2026-03-28 01:10:00", "Europe/Berlin"),
    ("2026-10-25 01:20:00", "Europe/Berlin"),
    ("2026-03-07 23:00:00", "America/New_York"),
    ("2026-10-31 23:30:00", "America/New_York"),
    ("2026-10-03 23:50:00", "Australia/Lord_Howe"),
    ("2026-04-04 23:50:00", "Australia/Lord_Howe"),
    ("2026-04-23 22:00:00", "Africa/Cairo"),
    ("2026-03-28 12:00:00", "America/Nuuk"),
];
const TICKS: usize = 4;

const MINUTES: &[&str] = &[
    "*", "0", "59", "007", "*/15", "*/60", "*/61", "*/1", "*/0", "*/65535", "*/65536", "5/20", "5/60", "5-5/1", "10-20", "10-20/4", "20-10", "10-20-30",
    "0,30", "1,,2", ",5", "*,5", "60", "-1", "+5", "1-", "/5", "*/", "5/", "?", "L", "5L", "5W", "5#1", "MON", "SUN-TUE", "JAN", "1-5#2", "x", "1.5", "*/5/5", "*-5", "**",
];
const HOURS: &[&str] = &["*", "0", "2", "23", "24", "*/2", "*/24", "*/1", "0-23", "1-3", "2,3", "2-2/1", "2/30", "1-3/2", "2/1", "L", "?"];
const DAYS: &[&str] = &[
    "*", "?", "*/2", "*/1", "?/2", "??", "*/31", "*/32", "1", "13", "31", "0", "32", "L", "l", "L,15", "1,L", "LL", "5L", "15W", "1W", "31W", "32W", "0W", "15w", "15W,L", "15W3", "15WL",
    "1-7", "1-5W", "8-14/3", "2/10", "1-31", "L/2", "15W/2", "5#1", "+1", "1,,15", "30", "29", "MON", "JAN-MAR", "TUE/7",
];
const MONTHS: &[&str] = &["*", "*/3", "*/12", "*/13", "2", "FEB", "feb-apr", "JAN,JUL", "12", "13", "0", "?", "L", "NOV-FEB", "1/5", "JAN/4", "JANUARY", "jan0", "2-12/5", "MON", "4,6,9,11"];
const WEEK: &[&str] = &[
    "*", "?", "*/2", "*/1", "*/7", "*/8", "?/3", "0", "1", "6", "7", "8", "SUN", "mon", "MON-FRI", "FRI-SUN", "FRI-MON", "SUN-SAT", "SAT-SUN", "5-7", "5-0", "1/2", "5/1", "L", "5L", "FRIL",
    "SUNL", "0L", "7L", "5#L", "MON#L", "7#L", "5LL", "5#2L", "#L", "L#L", "1-5L", "1-5#L", "1-5#2", "MON-WED#1", "*/2#1", "*#2", "5#3", "FRI#3", "7#1", "SUN#1", "5#0", "5#6", "5#", "5#05",
    "5#1#2", "1#1,3#3", "MON#1,FRI#L", "+1", "+MON", "+MON-FRI", "+*", "+", "++1", "1+", "+5L", "+5#2", "+SUN", "+7", "+1/2", "+?", "1,,2", ",", "THURSDAY", "15W", "LW", "1L5", "MONTUE", "SUN,7,0",
];
const YEARS: &[&str] = &["*", "2026", "2027", "2026-2028", "*/4", "2028/4", "2020", "2090", "5001", "0", "1999,2030", "2000-2099/10", "L", "?", "2024,2028", "2033", "1-5000"];
const WHOLE: &[&str] = &[
    "", " ", "*", "* * * *", "* * * * * * * *", "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@hourly", "@DAILY", " @Weekly ", "@every 5m", "@reboot", "0 @ * * *", "@daily *",
    "\t0\t12  *  * 1 ", "0 0 30 2 *", "0 0 31 4 *", "0 0 29 2 +1", "0 0 29 2 1", "0 0 1-7 * +1", "0 0 */100,1-7 * MON", "0 0 */2 * 1", "0 0 * * 1 *", "0 0 0 1 1 ? 2030", "0 0 12 29 2 ? 2028-2040",
    "0 0 0 L 2 * 2027-2029", "*/15 0-6 * * *", "0 9-17/2 * * MON-FRI", "5,10,15 */6 1,15 * *", "0 0 ? * ?", "0 0 L */3 *", "59 59 23 31 12 *", "0 0 0 29 2 * 2100-2110", "0 0 15W,L 2 +MON-FRI",
];

fn expressions() -> Vec<String> {
    let mut list = BTreeSet::new();
    let mut order = vec![];
    let mut add = |text: String| {
        if list.insert(text.clone()) {
            order.push(text);
        }
    };
    for text in WHOLE {
        add(text.to_string());
    }
    for m in MINUTES {
        add(format!("{m} * * * *"));
        add(format!("{m} 2 * * *"));
        add(format!("{m} 0 0 * * *"));
        add(format!("{m} 30 2 * * *"));
    }
    for h in HOURS {
        for m in ["0", "30", "*/20", "15,45", "59"] {
            add(format!("{m} {h} * * *"));
            add(format!("0 {m} {h} * * SAT,SUN"));
        }
    }
    for d in DAYS {
        for w in WEEK {
            if *d == "*" || *w == "*" || ["1", "MON#L", "+1", "L", "5L", "*/2", "MON-FRI", "?", "1#1,3#3", "+MON-FRI"].contains(w) || ["13", "L", "*/2", "?", "15W", "1-7", "*/1"].contains(d) {
                add(format!("0 0 {d} * {w}"));
            }
        }
        add(format!("30 2 {d} */3 *"));
    }
    for m in MONTHS {
        add(format!("0 12 1 {m} *"));
        add(format!("0 0 12 ? {m} MON#1"));
        add(format!("0 0 29 {m} +SUN"));
    }
    for y in YEARS {
        for rest in ["0 0 0 1 1 *", "0 30 2 L * +SUN", "*/30 0 0 29 2 *", "15 */20 * * * 6"] {
            add(format!("{rest} {y}"));
        }
    }
    // Any with any, drawn by a fixed seed.
    let mut seed: u64 = 42;
    let mut draw = |from: &[&'static str]| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        from[(seed >> 33) as usize % from.len()]
    };
    let mut drawn = vec![];
    while drawn.len() < 4000 {
        let (s, m, h, d, o, w, y) = (draw(MINUTES), draw(MINUTES), draw(HOURS), draw(DAYS), draw(MONTHS), draw(WEEK), draw(YEARS));
        drawn.push(match draw(&["5", "6", "7"]) {
            "5" => format!("{m} {h} {d} {o} {w}"),
            "6" => format!("{s} {m} {h} {d} {o} {w}"),
            _ => format!("{s} {m} {h} {d} {o} {w} {y}"),
        });
    }
    // Of what is drawn at random most is refused: enough that all else is taken.
    let mut refused = 0;
    for text in drawn {
        if parse(&text).is_none() {
            refused += 1;
            if refused > 150 {
                continue;
            }
        }
        add(text);
    }
    order
}

fn parse(text: &str) -> Option<Cron> {
    CronParser::builder().seconds(Seconds::Optional).build().parse(text).ok()
}

// The ticks after a moment. Zizq asks for the first one again and again; where
// croner says that a time comes twice, both are ticks here, as its iterator has it.
fn ticks(cron: &Cron, start: &DateTime<Tz>) -> Vec<i64> {
    let interval = cron.determine_job_type() == JobType::IntervalWildcard;
    let mut found = BTreeSet::new();
    let mut at = *start;
    for _ in 0..20_000 {
        let Ok(next) = cron.find_next_occurrence(&at, false) else { break };
        at = next;
        if slip(cron, &at) {
            continue;
        }
        found.insert(at.timestamp());
        match at.timezone().from_local_datetime(&at.naive_local()) {
            LocalResult::Ambiguous(_, second) if interval => {
                found.insert(second.timestamp());
            }
            _ if found.len() >= TICKS => break,
            _ => (),
        }
    }
    found.into_iter().take(TICKS).collect()
}

// Where a gap begins at midnight, croner has a time of the day tick at its end
// as well, whatever the hour. That is left out.
fn slip(cron: &Cron, at: &DateTime<Tz>) -> bool {
    if cron.determine_job_type() != JobType::FixedTime || cron.is_time_matching(at).unwrap() {
        return false;
    }
    let p = &cron.pattern;
    let only = |list: Vec<u16>| list[0] as u32;
    let named = at.date_naive().and_hms_opt(only(p.hours.get_set_values(1)), only(p.minutes.get_set_values(1)), only(p.seconds.get_set_values(1))).unwrap();
    at.timezone().from_local_datetime(&named) != LocalResult::None && named.date().and_hms_opt(0, 0, 0).unwrap() < at.naive_local()
}

fn main() {
    println!("# What croner 3.0.1 makes of cron expressions, with the options that Zizq 0.7 gives it;");
    println!("# printed by testdata/croner (MIT licensed croner and chrono-tz 0.10.4 from crates.io).");
    println!("# START NUMBER UNIX ZONE: where the reading begins. Then NUMBER EXPRESSION = the seconds to the");
    println!("# next {TICKS} ticks, each from the one before; none if no more come; refused if it cannot be read.");
    let mut starts: Vec<DateTime<Tz>> = vec![];
    for (i, (wall, zone)) in STARTS.iter().enumerate() {
        let naive = NaiveDateTime::parse_from_str(wall, "%Y-%m-%d %H:%M:%S").unwrap();
        let start = zone.parse::<Tz>().unwrap().from_local_datetime(&naive).unwrap();
        println!("START {i} {} {zone}", start.timestamp());
        starts.push(start);
    }
    for (n, text) in expressions().iter().enumerate() {
        let shown = text.replace('\t', "\\t");
        let Some(cron) = parse(text) else {
            println!("0 {shown} = refused");
            continue;
        };
        let timed = text.split_whitespace().any(|f| f == "2" || f.starts_with("2/") || f.starts_with("1-3") || f == "23" || f == "2,3" || f == "2-2/1") || text.contains("*/20");
        let which: Vec<usize> = if timed { (0..starts.len()).filter(|i| *i > 1 && (i + n) % 2 == 0).collect() } else { vec![n % starts.len()] };
        for i in which {
            let mut before = starts[i].timestamp();
            let deltas: Vec<String> = ticks(&cron, &starts[i]).into_iter().map(|t| { let d = t - before; before = t; d.to_string() }).collect();
            println!("{i} {shown} = {}", if deltas.is_empty() { "none".to_string() } else { deltas.join(" ") });
        }
    }
}
