//! What agents may do, as the operator has written it. Pure.

use crate::{
    model::{glob, words},
    profile::{fits, is_below},
};
use std::{path::Path, time::Duration};

words! {
    /// How much an agent is trusted. The least is the first.
    Level {
        /// It sees no server and calls none.
        Sandboxed = "sandboxed",
        /// It uses servers, and is asked for as their consent says.
        #[default]
        Trusted = "trusted",
        /// It uses servers, and nobody is ever asked.
        Yolo = "yolo",
    }
}

words! {
    /// When somebody is asked before a server is used. The least strict is the first.
    Consent {
        /// Never.
        #[default]
        Never = "never",
        /// Once for each server, by each agent.
        Server = "server",
        /// For each call.
        Call = "call",
    }
}

impl Consent {
    /// The stricter of the two.
    #[must_use]
    pub fn or_stricter(self, other: Self) -> Self {
        if other as u8 > self as u8 {
            other
        } else {
            self
        }
    }
}

words! {
    /// What becomes of a tool that is no longer what it was.
    Pins {
        /// Nobody looks.
        Off = "off",
        /// It is told.
        #[default]
        Warn = "warn",
        /// It is held back until somebody has approved of it.
        Block = "block",
    }
}

words! {
    /// What becomes of a result that is too large.
    Oversize {
        /// The call fails.
        #[default]
        Refuse = "refuse",
        /// Its text is cut, and says so.
        Truncate = "truncate",
    }
}

/// How often something may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// So many times…
    pub count: u32,
    /// …in this time.
    pub per: Duration,
    /// So many of them at once.
    pub burst: u32,
}

impl Rate {
    /// `10/s`, `60/min`, `1000/h`, `5/10s`, and with a burst `10/s burst 50`.
    pub fn parse(text: &str) -> Option<Self> {
        let (rate, burst) = match text.split_once("burst") {
            Some((rate, burst)) => (rate, Some(burst.trim().parse().ok()?)),
            None => (text, None),
        };
        let (count, per) = rate.split_once('/')?;
        let count: u32 = count.trim().parse().ok()?;
        let per = per.trim();
        let letters = per.trim_start_matches(|c: char| c.is_ascii_digit());
        let number: u32 = match &per[..per.len() - letters.len()] {
            "" => 1,
            digits => digits.parse().ok()?,
        };
        let unit = match letters.trim() {
            "s" | "sec" | "second" => 1,
            "m" | "min" | "minute" => 60,
            "h" | "hour" => 3600,
            "d" | "day" => 24 * 3600,
            _ => return None,
        };
        let per = Duration::from_secs(u64::from(number) * unit);
        let burst = burst.unwrap_or(count);
        let rate = Self { count, per, burst };
        (count > 0 && burst > 0 && !per.is_zero()).then_some(rate)
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/", self.count)?;
        match self.per.as_secs() {
            1 => f.write_str("s")?,
            60 => f.write_str("min")?,
            3600 => f.write_str("h")?,
            seconds => write!(f, "{seconds}s")?,
        }
        match self.burst == self.count {
            true => Ok(()),
            false => write!(f, " burst {}", self.burst),
        }
    }
}

/// What agents may do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// The level of agents that no rule is for.
    pub level: Option<Level>,
    /// When somebody is asked, where neither the server nor a rule says it.
    pub consent: Option<Consent>,
    /// How long a question is open.
    pub approval_timeout: Option<Duration>,
    /// Programs that are the operator's, besides `nexusctl`.
    pub operators: Vec<String>,
    /// How often each agent may call.
    pub rate_limit: Option<Rate>,
    /// The largest result, in bytes.
    pub max_result: Option<usize>,
    /// What becomes of a larger one.
    pub oversize: Option<Oversize>,
    /// What becomes of tools that change.
    pub pins: Option<Pins>,
    /// Whether calls are written down.
    pub audit: Option<bool>,
    /// With their arguments.
    pub audit_arguments: Option<bool>,
    /// Which agents are treated how: the first that fits counts.
    pub rules: Vec<Rule>,
}

/// How some agents are treated. One that names neither agents nor programs nor projects fits nobody.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    /// What it is called.
    pub name: String,
    /// For agents that call themselves so.
    pub agents: Vec<String>,
    /// For agents that are, or were started by, such a program.
    pub programs: Vec<String>,
    /// For agents that work there, or below.
    pub projects: Vec<String>,
    /// Their level.
    pub level: Option<Level>,
    /// When somebody is asked for them.
    pub consent: Option<Consent>,
    /// Their profile.
    pub profile: Option<String>,
    /// How often each of them may call.
    pub rate_limit: Option<Rate>,
}

/// Somebody whom a rule may be for.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// What they call themselves; may be empty.
    pub name: &'a str,
    /// The names of their program, and of those that started it.
    pub programs: &'a [String],
    /// The folder that they work in.
    pub project: Option<&'a Path>,
    /// What `~` stands for.
    pub home: Option<&'a Path>,
}

impl Rule {
    /// Whether it is for somebody: all that it names has to fit.
    pub fn is_for(&self, who: Subject<'_>) -> bool {
        let names_nobody =
            self.agents.is_empty() && self.programs.is_empty() && self.projects.is_empty();
        let agent = || self.agents.iter().any(|pattern| fits(pattern, who.name));
        let program = || is_program(&self.programs, who.programs);
        let project = || {
            who.project
                .is_some_and(|folder| is_below(&self.projects, folder, who.home))
        };
        !names_nobody
            && (self.agents.is_empty() || agent())
            && (self.programs.is_empty() || program())
            && (self.projects.is_empty() || project())
    }
}

/// Whether one of the programs has a name of that kind: a pattern with a slash is for paths.
pub fn is_program(patterns: &[String], programs: &[String]) -> bool {
    let any = |pattern: &String| programs.iter().any(|program| glob(pattern, program));
    patterns.iter().any(any)
}

impl Policy {
    /// The rule that is for somebody.
    pub fn rule_for(&self, who: Subject<'_>) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.is_for(who))
    }

    /// What a later file says wins; its rules come first.
    pub fn add(&mut self, later: Self) {
        let Self {
            level,
            consent,
            approval_timeout,
            operators,
            rate_limit,
            max_result,
            oversize,
            pins,
            audit,
            audit_arguments,
            mut rules,
        } = later;
        self.level = level.or(self.level);
        self.consent = consent.or(self.consent);
        self.approval_timeout = approval_timeout.or(self.approval_timeout);
        self.operators.extend(operators);
        self.rate_limit = rate_limit.or(self.rate_limit);
        self.max_result = max_result.or(self.max_result);
        self.oversize = oversize.or(self.oversize);
        self.pins = pins.or(self.pins);
        self.audit = audit.or(self.audit);
        self.audit_arguments = audit_arguments.or(self.audit_arguments);
        let is_new = |old: &Rule| rules.iter().all(|rule| rule.name != old.name);
        self.rules.retain(is_new);
        rules.append(&mut self.rules);
        self.rules = rules;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_rate_is_read_as_people_write_it() {
        let rate = |count, seconds, burst| Rate {
            count,
            per: Duration::from_secs(seconds),
            burst,
        };
        for (text, read) in [
            ("10/s", Some(rate(10, 1, 10))),
            ("60/min", Some(rate(60, 60, 60))),
            ("5 / 10s", Some(rate(5, 10, 5))),
            ("1000/h burst 20", Some(rate(1000, 3600, 20))),
            ("0/s", None),
            ("10", None),
            ("10/fortnight", None),
            ("10/s burst 0", None),
            ("10/0s", None),
        ] {
            assert_eq!(Rate::parse(text), read, "{text}");
            if let Some(rate) = read {
                assert_eq!(Rate::parse(&rate.to_string()), Some(rate));
            }
        }
    }

    #[test]
    fn a_rule_is_for_those_who_fit_all_that_it_names() {
        let rule = Rule {
            agents: of(&["claude*"]),
            programs: of(&["*/bin/claude", "node"]),
            projects: of(&["~/web"]),
            ..Rule::default()
        };
        let programs = of(&["nexusctl", "/usr/bin/node", "node"]);
        let who = |name, project| Subject {
            name,
            programs: &programs,
            project: Some(Path::new(project)),
            home: Some(Path::new("/home/ann")),
        };
        assert!(rule.is_for(who("Claude Code", "/home/ann/web/src")));
        assert!(!rule.is_for(who("cursor", "/home/ann/web")));
        assert!(!rule.is_for(who("claude", "/home/ann")));
        assert!(!Rule::default().is_for(who("claude", "/home/ann/web")));
    }

    #[test]
    fn the_first_rule_counts_and_a_later_file_comes_first() {
        let rule = |name: &str, level| Rule {
            name: name.to_owned(),
            agents: of(&["*"]),
            level: Some(level),
            ..Rule::default()
        };
        let mut policy = Policy {
            level: Some(Level::Yolo),
            rules: vec![rule("a", Level::Yolo), rule("b", Level::Yolo)],
            ..Policy::default()
        };
        policy.add(Policy {
            level: Some(Level::Sandboxed),
            rules: vec![rule("b", Level::Trusted)],
            ..Policy::default()
        });
        let names: Vec<_> = policy.rules.iter().map(|rule| &rule.name).collect();
        assert_eq!(names, ["b", "a"]);
        assert_eq!(policy.level, Some(Level::Sandboxed));
        let who = Subject {
            name: "x",
            programs: &[],
            project: None,
            home: None,
        };
        assert_eq!(policy.rule_for(who).unwrap().level, Some(Level::Trusted));
    }
}
