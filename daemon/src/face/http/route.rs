//! What a path leads to. Pure.

use nexus_config::model::ToolsMode;

/// What a path leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// These servers; all when there are none.
    pub(super) servers: Vec<String>,
}

impl Route {
    /// `/mcp` is everything, `/mcp/NAME` one server under its own names.
    pub(super) fn of(path: &str) -> Option<Self> {
        let rest = path.strip_prefix("/mcp")?;
        let servers = match rest.strip_prefix('/') {
            None if rest.is_empty() => Vec::new(),
            Some("") => Vec::new(),
            Some(name) => vec![decode(name.strip_suffix('/').unwrap_or(name))?],
            None => return None,
        };
        Some(Self { servers })
    }
}

/// How tools are shown: `/mcp?tools=search`. What is not known is as if it were not there.
pub(super) fn tools(query: Option<&str>) -> Option<ToolsMode> {
    ToolsMode::parse(&value(query, "tools")?)
}

/// Which profile is wanted: `/mcp?profile=web`.
pub(super) fn profile(query: Option<&str>) -> Option<String> {
    value(query, "profile")
}

fn value(query: Option<&str>, name: &str) -> Option<String> {
    let pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.into_iter().find(|(key, _)| *key == name)?;
    decode(value)
}

/// Text without its `%XX`.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_says_how_tools_are_shown() {
        for (query, mode) in [
            (Some("tools=search"), Some(ToolsMode::Search)),
            (Some("x=1&tools=both&y"), Some(ToolsMode::Both)),
            (Some("tools=nothing"), None),
            (Some(""), None),
            (None, None),
        ] {
            assert_eq!(tools(query), mode, "{query:?}");
        }
    }

    #[test]
    fn a_path_leads_to_everything_or_to_one_server() {
        let to = |path| Route::of(path).map(|route| route.servers);
        assert_eq!(to("/mcp"), Some(vec![]));
        assert_eq!(to("/mcp/"), Some(vec![]));
        assert_eq!(to("/mcp/files"), Some(vec!["files".to_owned()]));
        assert_eq!(to("/mcp/my%20files/"), Some(vec!["my files".to_owned()]));
        for path in ["/", "/mcpx", "/sse", "/mcp/%", "/mcp/%zz", "/mcp/%ff", ""] {
            assert_eq!(to(path), None, "{path}");
        }
    }
}
