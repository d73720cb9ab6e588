//! What servers answer, for people.

use super::time;
use nexus_client::Content;

/// Text as it is, anything else in one line.
pub(crate) fn describe(content: Content) -> String {
    let size = |base64: &str| time::bytes(base64.len() as u64 / 4 * 3);
    let of = |kind: Option<String>| kind.map(|kind| format!(", {kind}")).unwrap_or_default();
    match content {
        Content::Text { text } => text,
        Content::Image { data, mime_type } => format!("[image: {mime_type}, {}]", size(&data)),
        Content::Audio { data, mime_type } => format!("[audio: {mime_type}, {}]", size(&data)),
        Content::ResourceLink {
            uri,
            name,
            mime_type,
        } => format!("[link: {uri}{}{}]", of(name), of(mime_type)),
        Content::Resource {
            text: Some(text), ..
        } => text,
        Content::Resource {
            uri,
            mime_type,
            blob,
            ..
        } => {
            let size = blob.map(|blob| size(&blob));
            format!("[resource: {uri}{}{}]", of(mime_type), of(size))
        }
        Content::Other(json) => format!("[{json}]"),
        _ => "[something that this version cannot show]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_other_than_text_are_one_line_each() {
        let image = Content::Image {
            data: "A".repeat(4096),
            mime_type: "image/png".into(),
        };
        assert_eq!(describe(image), "[image: image/png, 3.0 KiB]");
        let link = Content::ResourceLink {
            uri: "file:///a".into(),
            name: Some("a".into()),
            mime_type: None,
        };
        assert_eq!(describe(link), "[link: file:///a, a]");
        let blob = Content::Resource {
            uri: "file:///b".into(),
            mime_type: Some("application/pdf".into()),
            text: None,
            blob: Some("AAAA".into()),
        };
        assert_eq!(
            describe(blob),
            "[resource: file:///b, application/pdf, 3 B]"
        );
    }
}
