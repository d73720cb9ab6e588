//! Finds tools by words: a plain count of where the words stand. Pure.

use super::{Item as _, Tool};
use std::sync::Arc;

/// The tools that fit, the best first. An exact name comes before everything else.
pub fn search<'a>(
    tools: impl IntoIterator<Item = &'a Arc<Tool>>,
    query: &str,
    limit: usize,
) -> Vec<(Arc<Tool>, f32)> {
    let query = query.to_lowercase();
    let words: Vec<&str> = query.split_whitespace().collect();
    let mut found: Vec<(Arc<Tool>, f32)> = tools
        .into_iter()
        .map(|tool| (Arc::clone(tool), score(tool, query.trim(), &words)))
        .filter(|(_, score)| *score > 0.0)
        .collect();
    // Sorting is stable: tools that fit equally well stay in their own order.
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    found.truncate(limit);
    found
}

fn score(tool: &Tool, query: &str, words: &[&str]) -> f32 {
    let name = tool.tool.to_lowercase();
    if [
        name.as_str(),
        &tool.name.to_lowercase(),
        &tool.dotted().to_lowercase(),
    ]
    .contains(&query)
    {
        return 100.0;
    }
    let about = tool.about();
    let title = about.title.unwrap_or_default().to_lowercase();
    let description = about.description.unwrap_or_default().to_lowercase();
    let server = tool.server.to_lowercase();
    let of_word = |word: &&str| {
        let points = |text: &str, points: f32| if text.contains(*word) { points } else { 0.0 };
        points(&name, 5.0) + points(&title, 3.0) + points(&server, 2.0) + points(&description, 1.0)
    };
    words.iter().map(of_word).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::lists::Definition;

    fn tool(name: &str, description: &str) -> Arc<Tool> {
        let json = format!(r#"{{"name":"{name}","description":"{description}"}}"#);
        Arc::new(Tool::new(
            format!("s__{name}"),
            "s".into(),
            &Definition {
                key: name.into(),
                json: json.into(),
            },
        ))
    }

    fn names(query: &str) -> Vec<String> {
        let tools = [
            tool("list_files", "Lists the files of a folder"),
            tool("read", "Reads a file"),
            tool("read_many", "Reads many files at once"),
            tool("time", "Tells the time"),
        ];
        let found = search(&tools, query, 10);
        found
            .into_iter()
            .map(|(tool, _)| tool.tool.clone())
            .collect()
    }

    #[test]
    fn an_exact_name_comes_first() {
        assert_eq!(names("read")[0], "read");
        assert_eq!(names("s__read_many")[0], "read_many");
        assert_eq!(names("s.time"), ["time"]);
    }

    #[test]
    fn more_words_fit_better_and_names_count_more_than_descriptions() {
        assert_eq!(names("files read"), ["read_many", "list_files", "read"]);
        assert_eq!(names("nothing of this"), ["list_files"]);
        assert!(names("").is_empty());
    }
}
