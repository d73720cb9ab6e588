//! Results that are valid, and hard to pass on as they are.

/// Those that can be written down. Each is a whole result of `tools/call` in every revision that knows its content.
const WRITTEN: [&str; 14] = [
    // Unknown members at every level.
    r#"{"x-top":{"a":[1,null]},"content":[{"type":"text","text":"unknown","x-item":true,"annotations":{"priority":0.5,"x-annotation":"y"},"_meta":{"example.com/x":{"deep":[{}]}}}],"structuredContent":{"known":1,"x-inner":{"x-more":[]}},"resultType":"complete","_meta":{"example.com/odd":"yes"},"zz":0}"#,
    // Numbers that fit no machine word, or only one of several ways to write them.
    r#"{"content":[{"type":"text","text":"numbers"}],"structuredContent":{"big":123456789012345678901234567890,"negative":-123456789012345678901234567890,"overflow":1e400,"tiny":1E-400,"zero":-0,"fraction":1.0,"exponent":1e+2,"digits":0.1000000000000000055511151231257827},"resultType":"complete"}"#,
    // The same key twice, within what nobody but the agent looks at.
    r#"{"content":[{"type":"text","text":"twice"}],"structuredContent":{"key":1,"key":2,"nested":{"a":1,"b":2,"a":3}},"x-twice":1,"x-twice":2,"resultType":"complete"}"#,
    // The same key twice, in the result itself.
    r#"{"content":[],"content":[{"type":"text","text":"first","text":"second"}],"resultType":"complete"}"#,
    // Spaces, and keys in no usual order.
    "{ \"resultType\" :\t\"complete\" , \"isError\":  false,\"structuredContent\" : { \"z\" : 1 , \"a\" : [ 1 ,2,  3 ] , \"\" : null } ,   \"content\" : [ { \"text\" : \"spaces\" , \"type\" : \"text\" } ] }",
    // Lone surrogates, both ways, in a value and in a key.
    r#"{"content":[{"type":"text","text":"high \ud800 low \udc00 pair \ud83d\ude00"}],"structuredContent":{"\ud800":"\udfff"},"resultType":"complete"}"#,
    // One character, written in several ways.
    r#"{"content":[{"type":"text","text":"A\u0041 \/ / \u002f \u00fc ü \u0000 \u001f \u007f \u2028 \t \\ \" é é 😀"}],"resultType":"complete"}"#,
    // Every type of content.
    r#"{"content":[{"type":"text","text":"all"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"},{"type":"resource_link","uri":"file:///readme.txt","name":"README","size":12,"x-link":1},{"type":"resource","resource":{"uri":"file:///a.txt","mimeType":"text/plain","text":"a"}},{"type":"resource","resource":{"uri":"file:///b.bin","blob":"AAEC"}}],"resultType":"complete"}"#,
    // An error that the agent can read.
    r#"{"isError":true,"content":[{"type":"text","text":"it went wrong"}],"structuredContent":{"code":7},"resultType":"complete"}"#,
    // Nothing.
    r#"{"content":[],"resultType":"complete"}"#,
    // Nothing but structure, and that is empty too.
    r#"{"structuredContent":{},"content":[],"resultType":"complete","_meta":{}}"#,
    // Names that mean something to one who reads too much.
    r#"{"content":[{"type":"text","text":"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"}],"structuredContent":{"jsonrpc":"2.0","id":1,"method":"ping","result":{},"error":{"code":1,"message":"m"},"__proto__":{},"$ref":"/#"},"id":99,"error":"none","resultType":"complete"}"#,
    // Metadata that belongs to others.
    r#"{"content":[{"type":"text","text":"meta"}],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"odd","version":"9","x":1},"progressToken":7,"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}"#,
    // What no revision has, under names that one may have some day.
    r#"{"content":[{"type":"text","text":"later"}],"resultType":"complete","ttlMs":5,"cacheScope":"private","taskId":"t","nextCursor":"c","requestState":"s"}"#,
];

/// How deep the nested one is.
const DEPTH: usize = 100;

/// How long the text of the long one is.
const LENGTH: usize = 10_000_000;

/// What the tool `odd` returns, by its `n` from 0 on: each the bytes of a whole result object, which are sent as they
/// are in both eras.
pub fn odd_results() -> Vec<Vec<u8>> {
    (0..).map_while(odd_result).collect()
}

/// One of them.
pub(crate) fn odd_result(n: usize) -> Option<Vec<u8>> {
    if let Some(written) = WRITTEN.get(n) {
        return Some(written.as_bytes().to_vec());
    }
    let generated = match n - WRITTEN.len() {
        0 => {
            let (open, close) = (r#"{"a":["#.repeat(DEPTH / 2), "]}".repeat(DEPTH / 2));
            format!(
                r#"{{"content":[{{"type":"text","text":"deep"}}],"structuredContent":{open}{close},"resultType":"complete"}}"#
            )
        }
        1 => {
            let text = "0123456789".repeat(LENGTH / 10);
            format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"resultType":"complete"}}"#)
        }
        _ => return None,
    };
    Some(generated.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    #[test]
    fn every_odd_result_is_a_json_object_on_one_line() {
        let all = odd_results();
        assert_eq!(all.len(), WRITTEN.len() + 2);
        for result in all {
            let raw: &RawValue = serde_json::from_slice(&result).unwrap();
            assert!(raw.get().starts_with('{') && raw.get().contains(r#""resultType""#));
            assert!(!result.contains(&b'\n') && !result.contains(&b'\r'));
        }
    }
}
