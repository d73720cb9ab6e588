//! Contents: the smallest picture, the shortest sound, and what the resources say.

use crate::reply::{Outcome, quoted};

/// A PNG of one red pixel.
pub(super) const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

/// A WAV without a single sample.
const SOUND: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

/// The result of a tool that has one, whoever calls it.
pub(super) fn of_tool(name: &str) -> Option<Outcome> {
    let picture = format!(r#"{{"type":"image","data":"{PICTURE}","mimeType":"image/png"}}"#);
    let content = match name {
        "test_simple_text" => {
            return Some(Outcome::text(
                "This is a simple text response for testing.",
                "",
            ));
        }
        "test_error_handling" => {
            return Some(Outcome::text(
                "This tool intentionally returns an error for testing",
                r#""isError":true"#,
            ));
        }
        "test_image_content" => picture,
        "test_audio_content" => {
            format!(r#"{{"type":"audio","data":"{SOUND}","mimeType":"audio/wav"}}"#)
        }
        "test_embedded_resource" => embedded(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content.",
        ),
        "test_multiple_content_types" => {
            let text = r#"{"type":"text","text":"Multiple content types test:"}"#;
            let resource = embedded(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#,
            );
            format!("{text},{picture},{resource}")
        }
        _ => return None,
    };
    Some(Outcome::complete(format!(r#""content":[{content}]"#)))
}

/// A resource within a message.
pub(super) fn embedded(uri: &str, media_type: &str, text: &str) -> String {
    let (uri, text) = (quoted(uri), quoted(text));
    format!(
        r#"{{"type":"resource","resource":{{"uri":{uri},"mimeType":"{media_type}","text":{text}}}}}"#
    )
}

/// The contents of a resource: its media type, and the member that they come in.
pub(crate) fn resource(uri: &str) -> Option<(&'static str, String)> {
    let text = |text: &str| format!(r#""text":{}"#, quoted(text));
    match uri {
        "test://static-text" => Some((
            "text/plain",
            text("This is the content of the static text resource."),
        )),
        "test://static-binary" => Some(("image/png", format!(r#""blob":"{PICTURE}""#))),
        "test://watched-resource" => Some(("text/plain", text("This resource can be watched."))),
        _ => {
            let id = uri
                .strip_prefix("test://template/")?
                .strip_suffix("/data")?;
            if id.is_empty() || id.contains('/') {
                return None;
            }
            let data = serde_json::json!({
                "id": id,
                "templateTest": true,
                "data": format!("Data for ID: {id}"),
            });
            Some(("application/json", text(&data.to_string())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_in_with_what_the_uri_says() {
        let (media_type, member) = resource("test://template/12 3/data").unwrap();
        assert_eq!(media_type, "application/json");
        assert!(member.contains("Data for ID: 12 3"), "{member}");
        for wrong in [
            "test://template//data",
            "test://template/a/b/data",
            "test://template/1",
            "test://nope",
        ] {
            assert!(resource(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn every_content_is_json() {
        for name in [
            "test_image_content",
            "test_audio_content",
            "test_embedded_resource",
            "test_multiple_content_types",
        ] {
            let members = String::from_utf8(of_tool(name).unwrap().members).unwrap();
            let result: serde_json::Value =
                serde_json::from_str(&format!("{{{members}}}")).unwrap();
            assert!(result["content"][0]["type"].is_string(), "{name}");
        }
    }
}
