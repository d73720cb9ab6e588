//! From words to tools, the best first.

use super::{
    document::Place,
    index::Index,
    words::{self, stem},
};

/// More words than this are not looked for.
const MAX_WORDS: usize = 32;

/// The shortest beginning of a word that stands for it.
const MIN_BEGINNING: usize = 2;

/// The shortest word that may have been meant otherwise.
const MIN_ALMOST: usize = 5;

/// What a word counts that only begins like the one that was asked for, or is almost it.
const BEGINNING: f32 = 0.7;
const ALMOST: f32 = 0.5;

/// What a tool scores at least whose name is what was asked for, but for what stands between its words.
const SQUASHED: f32 = 0.9;

/// A tool that fits: in which list, the how-manieth there, and how well, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hit {
    pub(super) list: usize,
    pub(super) tool: u32,
    pub(super) score: f32,
}

/// The tools of these lists that fit a query, the best first. 1 is for those of exactly this name.
pub(super) fn rank(indexes: &[&Index], query: &str, limit: usize) -> tantivy::Result<Vec<Hit>> {
    let mut scores: Vec<Scores> = indexes
        .iter()
        .map(|index| Scores::new(index.size()))
        .collect();
    let all: f32 = indexes.iter().map(|index| index.size() as f32).sum();
    let asked = asked(query);
    let mut most = 0.0;
    for (n, word) in asked.iter().enumerate() {
        look_for(word, n + 1 == asked.len(), indexes, &mut scores)?;
        let having: usize = scores.iter().map(|scores| scores.touched.len()).sum();
        // The fewer tools have a word, the more it tells: BM25's measure, over what this caller sees.
        let having = having as f32;
        let rarity = (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
        most += rarity;
        scores.iter_mut().for_each(|scores| scores.settle(rarity));
    }
    let mut hits = Vec::new();
    let name = query.trim().to_lowercase();
    let name = name.strip_prefix("mcp:").unwrap_or(&name);
    let squashed = words::squash(name);
    for (list, (index, scores)) in indexes.iter().zip(&scores).enumerate() {
        let score = |tool: u32| scores.total[tool as usize] / f32::max(most, f32::MIN_POSITIVE);
        let mut exact = Vec::new();
        if !squashed.is_empty() {
            exact = index.named(name, false)?;
            hits.extend(exact.iter().map(|&tool| (2, score(tool), list, tool)));
            let alike = index.named(&squashed, true)?;
            let alike = alike
                .into_iter()
                .filter(|tool| !exact.contains(tool))
                .collect::<Vec<_>>();
            hits.extend(alike.iter().map(|&tool| (1, score(tool), list, tool)));
            exact.extend(alike);
        }
        let rest = (0..index.size()).filter(|tool| !exact.contains(tool));
        let rest = rest.map(|tool| (0, score(tool), list, tool));
        hits.extend(rest.filter(|(_, score, ..)| *score > 0.0));
    }
    // What fits equally well stays in the order of the lists.
    let order = |a: &(u8, f32, usize, u32), b: &(u8, f32, usize, u32)| {
        let better = b.0.cmp(&a.0).then(b.1.total_cmp(&a.1));
        better.then(a.2.cmp(&b.2)).then(a.3.cmp(&b.3))
    };
    if hits.len() > limit && limit > 0 {
        hits.select_nth_unstable_by(limit - 1, order);
    }
    hits.truncate(limit);
    hits.sort_unstable_by(order);
    let hit = |(tier, score, list, tool)| Hit {
        list,
        tool,
        score: match tier {
            2 => 1.0,
            1 => SQUASHED + (1.0 - SQUASHED) * score,
            _ => SQUASHED * score,
        },
    };
    Ok(hits.into_iter().map(hit).collect())
}

/// The words that are looked for. Empty ones are only if there are no others.
fn asked(query: &str) -> Vec<String> {
    let mut asked: Vec<String> = Vec::new();
    for word in words::split(query) {
        if asked.len() < MAX_WORDS && !asked.contains(&word) {
            asked.push(word);
        }
    }
    if asked.iter().any(|word| !words::is_empty(word)) {
        asked.retain(|word| !words::is_empty(word));
    }
    asked
}

/// Notes where a word stands. The last one may not have been finished, and one that nobody has may be misspelt.
fn look_for(
    word: &str,
    is_last: bool,
    indexes: &[&Index],
    scores: &mut [Scores],
) -> tantivy::Result<()> {
    let own = stem(word);
    note(&own, 1.0, indexes, scores)?;
    let mut others = Vec::new();
    let mut add = |other: &str| {
        let stem = stem(other);
        if stem != own && !others.contains(&stem) {
            others.push(stem);
        }
    };
    if is_last && word.chars().count() >= MIN_BEGINNING {
        for index in indexes {
            index.beginning(word, &mut add)?;
        }
        for other in std::mem::take(&mut others) {
            note(&other, BEGINNING, indexes, scores)?;
        }
    }
    let is_known = scores.iter().any(|scores| !scores.touched.is_empty());
    if !is_known && word.chars().count() >= MIN_ALMOST {
        for index in indexes {
            index.almost(word, |other| {
                let stem = stem(other);
                if !others.contains(&stem) {
                    others.push(stem);
                }
            })?;
        }
        for other in others {
            note(&other, ALMOST, indexes, scores)?;
        }
    }
    Ok(())
}

fn note(stem: &str, factor: f32, indexes: &[&Index], scores: &mut [Scores]) -> tantivy::Result<()> {
    for (index, scores) in indexes.iter().zip(scores) {
        index.stands(stem, |tool, place, weight| {
            scores.note(tool, place, factor * weight)
        })?;
    }
    Ok(())
}

/// What the tools of one list have scored so far.
struct Scores {
    total: Vec<f32>,
    /// The word that is being looked for: its best weight in each place.
    word: Vec<[f32; Place::ALL.len()]>,
    /// The tools that have it.
    touched: Vec<u32>,
}

impl Scores {
    fn new(size: u32) -> Self {
        let size = size as usize;
        Self {
            total: vec![0.0; size],
            word: vec![Default::default(); size],
            touched: Vec::new(),
        }
    }

    fn note(&mut self, tool: u32, place: Place, weight: f32) {
        let word = &mut self.word[tool as usize];
        if word.iter().all(|weight| *weight == 0.0) {
            self.touched.push(tool);
        }
        let best = &mut word[place as usize];
        *best = best.max(weight);
    }

    /// Done with a word. Places speak for a tool like independent witnesses: together never more than 1.
    fn settle(&mut self, rarity: f32) {
        for tool in self.touched.drain(..) {
            let places = std::mem::take(&mut self.word[tool as usize]);
            let doubt: f32 = places.iter().map(|weight| 1.0 - weight).product();
            self.total[tool as usize] += rarity * (1.0 - doubt);
        }
    }
}
