//! What a path leads to. Pure.

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
