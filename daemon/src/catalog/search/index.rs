//! The index of one list of tools: which words stand where.
//!
//! Each list has one of its own, made by whoever searches first and dropped with the list. So nothing has to be
//! kept up to date, and what a caller does not see is not looked at: neither matches nor figures come from there.

use super::{
    super::Tool,
    document::{Fields, Place},
};
use std::sync::{Arc, LazyLock};
use tantivy::{
    DocSet as _, Index as TantivyIndex, SegmentReader, TERMINATED, TantivyDocument, Term,
    directory::RamDirectory,
    fieldnorm::FieldNormReader,
    index::InvertedIndexReader,
    postings::Postings as _,
    query::FuzzyTermQuery,
    schema::{Field, IndexRecordOption},
};

/// So many words that begin alike, or are almost alike, stand for one.
const MAX_SPELLINGS: usize = 64;

/// What the table of words begins with; it grows as it has to.
const ROOM: usize = 100_000;
const ROOM_FOR_A_TOOL: usize = 200;

static FIELDS: LazyLock<Fields> = LazyLock::new(Fields::new);

/// The index of one list.
pub(in crate::catalog) struct Index {
    size: u32,
    /// Nothing is listed if there is none.
    segment: Option<Segment>,
}

struct Segment {
    places: [(Arc<InvertedIndexReader>, FieldNormReader); Place::ALL.len()],
    spelling: Arc<InvertedIndexReader>,
    whole: Arc<InvertedIndexReader>,
    squashed: Arc<InvertedIndexReader>,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl Index {
    /// The index of these tools. It takes its time: 10,000 tools some tenths of a second.
    pub(super) fn new(tools: &[Arc<Tool>], slug: &str) -> tantivy::Result<Self> {
        let fields = &*FIELDS;
        let room = ROOM + tools.len() * ROOM_FOR_A_TOOL;
        // One segment, and no threads: a list never changes, it is replaced.
        let mut writer = TantivyIndex::builder()
            .schema(fields.schema.clone())
            .single_segment_index_writer::<TantivyDocument>(RamDirectory::create(), room)?;
        for tool in tools {
            writer.add_document(fields.document(tool, slug))?;
        }
        let index = writer.finalize()?;
        let segment = match index.searchable_segments()?.first() {
            Some(segment) if !tools.is_empty() => {
                Some(Segment::open(&SegmentReader::open(segment)?)?)
            }
            _ => None,
        };
        Ok(Self {
            size: u32::try_from(tools.len()).unwrap_or(u32::MAX),
            segment,
        })
    }

    /// How many tools it has. They are numbered from 0, in the order of their list.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Where a stem stands: which tool, where, and how much that says of it.
    pub(super) fn stands(
        &self,
        stem: &str,
        mut tell: impl FnMut(u32, Place, f32),
    ) -> tantivy::Result<()> {
        let Some(segment) = &self.segment else {
            return Ok(());
        };
        for place in Place::ALL {
            let (words, lengths) = &segment.places[place as usize];
            let term = Term::from_field_text(FIELDS.of(place), stem);
            let Some(mut found) = words.read_postings(&term, IndexRecordOption::WithFreqs)? else {
                continue;
            };
            let mut tool = found.doc();
            while tool != TERMINATED {
                let weight = place.weight(found.term_freq(), lengths.fieldnorm(tool));
                tell(tool, place, weight);
                tool = found.advance();
            }
        }
        Ok(())
    }

    /// The tools that have exactly this name; a name without what stands between its words if `squashed`.
    pub(super) fn named(&self, name: &str, squashed: bool) -> tantivy::Result<Vec<u32>> {
        let Some(segment) = &self.segment else {
            return Ok(Vec::new());
        };
        let (names, field) = match squashed {
            true => (&segment.squashed, FIELDS.squashed),
            false => (&segment.whole, FIELDS.whole),
        };
        let term = Term::from_field_text(field, name);
        let mut tools = Vec::new();
        if let Some(mut found) = names.read_postings(&term, IndexRecordOption::Basic)? {
            while found.doc() != TERMINATED {
                tools.push(found.doc());
                found.advance();
            }
        }
        Ok(tools)
    }

    /// The words that begin like this.
    pub(super) fn beginning(&self, start: &str, tell: impl FnMut(&str)) -> tantivy::Result<()> {
        let Some(segment) = &self.segment else {
            return Ok(());
        };
        let range = segment.spelling.terms().range().ge(start);
        take(range.into_stream()?, |word| word.starts_with(start), tell);
        Ok(())
    }

    /// The words that are this but for one letter too many, too few, wrong, or swapped with the next.
    pub(super) fn almost(&self, word: &str, tell: impl FnMut(&str)) -> tantivy::Result<()> {
        let Some(segment) = &self.segment else {
            return Ok(());
        };
        let term = Term::from_field_text(FIELDS.spelling, word);
        let automaton = FuzzyTermQuery::new(term, 1, true).automaton()?;
        let found = segment.spelling.terms().search(automaton).into_stream()?;
        take(found, |_| true, tell);
        Ok(())
    }
}

/// Tells of words for as long as they are wanted.
fn take<A: tantivy_fst::Automaton>(
    mut found: tantivy::termdict::TermStreamer<'_, A>,
    wanted: impl Fn(&str) -> bool,
    mut tell: impl FnMut(&str),
) where
    A::State: Clone,
{
    let mut left = MAX_SPELLINGS;
    while left > 0 && found.advance() {
        match std::str::from_utf8(found.key()) {
            Ok(word) if wanted(word) => tell(word),
            _ => return,
        }
        left -= 1;
    }
}

impl Segment {
    fn open(reader: &SegmentReader) -> tantivy::Result<Self> {
        let words = |field: Field| reader.inverted_index(field);
        let place = |place: Place| {
            let field = FIELDS.of(place);
            tantivy::Result::Ok((words(field)?, reader.get_fieldnorms_reader(field)?))
        };
        let [name, title, server, description, parameters] = Place::ALL.map(place);
        Ok(Self {
            places: [name?, title?, server?, description?, parameters?],
            spelling: words(FIELDS.spelling)?,
            whole: words(FIELDS.whole)?,
            squashed: words(FIELDS.squashed)?,
        })
    }
}
