//! Everything the server offers, as the JSON text it is listed with, and the contents behind it.

use std::borrow::Cow;

use crate::catalog::List;

/// The tools that are always there, in the order they are listed.
pub(crate) const TOOLS: [&str; 4] = [
    r#"{"name":"echo","title":"Echo","description":"Returns the message it is given.","inputSchema":{"type":"object","properties":{"message":{"type":"string","description":"The text to return."},"nonce":{"type":"string","description":"Marks this call in the journal."}},"required":["message"],"additionalProperties":false},"annotations":{"title":"Echo","readOnlyHint":true,"idempotentHint":true,"destructiveHint":false,"openWorldHint":false}}"#,
    r#"{"name":"get_time","title":"Current time","description":"Returns the current time in UTC as RFC 3339.","inputSchema":{"type":"object","properties":{"nonce":{"type":"string","description":"Marks this call in the journal."}},"additionalProperties":false},"annotations":{"title":"Current time","readOnlyHint":true,"idempotentHint":false,"destructiveHint":false,"openWorldHint":false}}"#,
    r#"{"name":"add","title":"Add","description":"Adds two numbers.","inputSchema":{"type":"object","properties":{"a":{"type":"number","description":"The first number."},"b":{"type":"number","description":"The second number."},"nonce":{"type":"string","description":"Marks this call in the journal."}},"required":["a","b"],"additionalProperties":false},"outputSchema":{"type":"object","properties":{"sum":{"type":"number","description":"The sum of both."}},"required":["sum"],"additionalProperties":false},"annotations":{"title":"Add","readOnlyHint":true,"idempotentHint":true,"destructiveHint":false,"openWorldHint":false}}"#,
    r#"{"name":"slow_operation","title":"Slow operation","description":"Takes its time and reports progress. It counts as an operation with effects: it is neither read-only nor idempotent.","inputSchema":{"type":"object","properties":{"duration":{"type":"number","description":"How long it takes, in seconds.","default":2,"minimum":0,"maximum":600},"steps":{"type":"integer","description":"How many times it reports progress.","default":5,"minimum":1,"maximum":1000},"nonce":{"type":"string","description":"Marks this call in the journal."}},"additionalProperties":false},"annotations":{"title":"Slow operation","readOnlyHint":false,"idempotentHint":false,"destructiveHint":false,"openWorldHint":false}}"#,
];

/// Listed with `--env-tool`.
pub(crate) const ENV_TOOL: &str = r#"{"name":"env","title":"Environment","description":"Returns the environment variables, the working directory and the arguments of the server's process.","inputSchema":{"type":"object","properties":{"nonce":{"type":"string","description":"Marks this call in the journal."}},"additionalProperties":false},"annotations":{"title":"Environment","readOnlyHint":true,"idempotentHint":true,"destructiveHint":false,"openWorldHint":false}}"#;

/// Listed with `--state`.
pub(crate) const STATE_TOOLS: [&str; 2] = [
    r#"{"name":"remember","title":"Remember","description":"Keeps the value it is given and returns the one that the previous call gave to this process; nothing at first.","inputSchema":{"type":"object","properties":{"value":{"type":"string","description":"The text to keep."},"nonce":{"type":"string","description":"Marks this call in the journal."}},"required":["value"],"additionalProperties":false},"annotations":{"title":"Remember","readOnlyHint":false,"idempotentHint":false,"destructiveHint":true,"openWorldHint":false}}"#,
    r#"{"name":"whoami","title":"Who am I","description":"Returns the process id of the server.","inputSchema":{"type":"object","properties":{"nonce":{"type":"string","description":"Marks this call in the journal."}},"additionalProperties":false},"annotations":{"title":"Who am I","readOnlyHint":true,"idempotentHint":true,"destructiveHint":false,"openWorldHint":false}}"#,
];

/// Listed with `--interactive`.
pub(crate) const INTERACTIVE_TOOLS: [&str; 5] = [
    r#"{"name":"ask","title":"Ask","description":"Puts a question to the client and returns its answer as JSON: the result, or an object with the error.","inputSchema":{"type":"object","properties":{"kind":{"type":"string","enum":["sampling","elicitation","url","roots","both"],"description":"What to ask for; both is elicitation and roots at once."},"text":{"type":"string","description":"Stands in the question, unless it is for the roots.","default":""},"rounds":{"type":"integer","description":"How many times to ask, one after the other; with more than one an array is returned.","default":1,"minimum":1,"maximum":10},"nonce":{"type":"string","description":"Marks this call in the journal."}},"required":["kind"],"additionalProperties":false},"annotations":{"title":"Ask","readOnlyHint":false,"idempotentHint":false,"destructiveHint":false,"openWorldHint":false}}"#,
    r#"{"name":"log","title":"Log","description":"Sends log messages and returns how many were sent.","inputSchema":{"type":"object","properties":{"level":{"type":"string","enum":["debug","info","notice","warning","error","critical","alert","emergency"],"description":"How grave they are."},"message":{"type":"string","description":"Their text."},"count":{"type":"integer","description":"How many; each then has its number, from 1 on, after a space.","minimum":1,"maximum":100000},"nonce":{"type":"string","description":"Marks this call in the journal."}},"required":["level","message"],"additionalProperties":false},"annotations":{"title":"Log","readOnlyHint":false,"idempotentHint":false,"destructiveHint":false,"openWorldHint":false}}"#,
    r#"{"name":"touch","title":"Touch","description":"Changes a resource, tells those who have subscribed to it, and returns how many were told.","inputSchema":{"type":"object","properties":{"uri":{"type":"string","description":"The resource."},"nonce":{"type":"string","description":"Marks this call in the journal."}},"required":["uri"],"additionalProperties":false},"annotations":{"title":"Touch","readOnlyHint":false,"idempotentHint":false,"destructiveHint":false,"openWorldHint":false}}"#,
    r#"{"name":"grow","title":"Grow","description":"Adds an entry to a list, tells those who listen, and returns its name, or the URI of a resource.","inputSchema":{"type":"object","properties":{"what":{"type":"string","enum":["tools","resources","prompts"],"description":"The list."},"nonce":{"type":"string","description":"Marks this call in the journal."}},"required":["what"],"additionalProperties":false},"annotations":{"title":"Grow","readOnlyHint":false,"idempotentHint":false,"destructiveHint":false,"openWorldHint":false}}"#,
    r#"{"name":"odd","title":"Odd","description":"Returns one of the results that are hard to pass on unchanged.","inputSchema":{"type":"object","properties":{"n":{"type":"integer","description":"Which one, from 0 on.","minimum":0},"nonce":{"type":"string","description":"Marks this call in the journal."}},"required":["n"],"additionalProperties":false},"annotations":{"title":"Odd","readOnlyHint":true,"idempotentHint":true,"destructiveHint":false,"openWorldHint":false}}"#,
];

/// Listed once the fault list-changed or list-storm has struck.
pub(crate) const EXTRA_TOOL: &str = r#"{"name":"extra_tool","title":"Extra tool","description":"Was not there before the list changed.","inputSchema":{"type":"object","properties":{"input":{"type":"string","description":"Any text."},"nonce":{"type":"string","description":"Marks this call in the journal."}},"additionalProperties":false},"annotations":{"title":"Extra tool","readOnlyHint":true,"idempotentHint":true,"destructiveHint":false,"openWorldHint":false}}"#;

/// A tool's definition as `--read-only-hints` has it: `slow_operation` says that it may be repeated.
pub(crate) fn hinted(tool: &'static str) -> Cow<'static, str> {
    if !tool.starts_with(r#"{"name":"slow_operation""#) {
        return Cow::Borrowed(tool);
    }
    let tool = tool
        .replace(r#""idempotentHint":false"#, r#""idempotentHint":true"#)
        .replace(
            "it is neither read-only nor idempotent.",
            "it is idempotent, but not read-only.",
        );
    Cow::Owned(tool)
}

/// The name (of a resource the URI) of the entry with this number, from 1 on, that the tool `grow` has added.
pub(crate) fn grown_name(list: List, number: u32) -> String {
    match list {
        List::Tools => format!("grown_tool_{number:04}"),
        List::Resources | List::Templates => format!("file:///grown/{number:04}.txt"),
        List::Prompts => format!("grown_prompt_{number:04}"),
    }
}

/// The definition of that entry.
pub(crate) fn grown_entry(list: List, number: u32) -> String {
    let name = grown_name(list, number);
    match list {
        List::Tools => generated_tool(number).replace(&generated_name(number), &name),
        List::Resources | List::Templates => {
            format!(r#"{{"uri":"{name}","name":"Grown {number}","mimeType":"text/plain"}}"#)
        }
        List::Prompts => format!(r#"{{"name":"{name}","description":"Was not there at first."}}"#),
    }
}

/// The name of the generated tool with this number, from 1 on.
pub(crate) fn generated_name(number: u32) -> String {
    format!("tool_{number:04}")
}

/// The definition of the generated tool with this number.
pub(crate) fn generated_tool(number: u32) -> String {
    let name = generated_name(number);
    format!(
        r#"{{"name":"{name}","title":"Generated tool {number}","description":"Generated tool number {number}: returns its input.","inputSchema":{{"type":"object","properties":{{"input":{{"type":"string","description":"Any text."}},"nonce":{{"type":"string","description":"Marks this call in the journal."}}}},"additionalProperties":false}},"annotations":{{"title":"Generated tool {number}","readOnlyHint":true,"idempotentHint":true,"destructiveHint":false,"openWorldHint":false}}}}"#
    )
}

/// The resources that are listed.
pub(crate) const RESOURCES: [&str; 3] = [
    r#"{"uri":"file:///readme.txt","name":"README","title":"README","description":"What this server is.","mimeType":"text/plain"}"#,
    r#"{"uri":"file:///config.json","name":"Configuration","title":"Configuration","description":"A configuration file.","mimeType":"application/json"}"#,
    r#"{"uri":"file:///data/users.csv","name":"Users Data","title":"Users Data","description":"A table of users.","mimeType":"text/csv"}"#,
];

/// The templates that are listed.
pub(crate) const RESOURCE_TEMPLATES: [&str; 1] = [
    r#"{"uriTemplate":"file:///data/{name}.csv","name":"Data table","title":"Data table","description":"A table by its name: users or orders.","mimeType":"text/csv"}"#,
];

/// The URI of that template.
pub(crate) const TEMPLATE_URI: &str = "file:///data/{name}.csv";

/// URI, media type and text of every resource; the last one is reachable by the template only.
pub(crate) const CONTENTS: [(&str, &str, &str); 4] = [
    (
        "file:///readme.txt",
        "text/plain",
        "nexus-test-server\n=================\n\nA small MCP server for demonstrations, tests and benchmarks of Nexus.\nIt behaves well unless it is started with --fault.\n",
    ),
    (
        "file:///config.json",
        "application/json",
        "{\n  \"name\": \"nexus-test-server\",\n  \"log_level\": \"info\",\n  \"features\": { \"progress\": true, \"cancellation\": true },\n  \"limits\": { \"max_duration_seconds\": 600 }\n}\n",
    ),
    (
        "file:///data/users.csv",
        "text/csv",
        "id,name,email,role\n1,Ada Lovelace,ada@example.com,admin\n2,Grace Hopper,grace@example.com,editor\n3,Alan Turing,alan@example.com,viewer\n",
    ),
    (
        "file:///data/orders.csv",
        "text/csv",
        "id,user_id,item,quantity\n1,1,punched cards,500\n2,2,nanosecond of wire,30\n3,3,paper tape,1\n",
    ),
];

/// The prompts that are listed.
pub(crate) const PROMPTS: [&str; 3] = [
    r#"{"name":"greeting","title":"Greeting","description":"Asks for a greeting.","arguments":[{"name":"name","description":"Whom to greet.","required":true},{"name":"formal","description":"Whether to be formal: true or false.","required":false}]}"#,
    r#"{"name":"code_review","title":"Code review","description":"Asks for a review of code.","arguments":[{"name":"language","description":"The programming language.","required":true},{"name":"focus","description":"What to look at most, such as security.","required":false}]}"#,
    r#"{"name":"summarize","title":"Summarize","description":"Asks for a summary.","arguments":[{"name":"max_length","description":"The most words it may have.","required":false}]}"#,
];

/// What `code_review.language` completes to.
pub(crate) const LANGUAGES: [&str; 12] = [
    "c",
    "c++",
    "c#",
    "go",
    "java",
    "javascript",
    "kotlin",
    "python",
    "ruby",
    "rust",
    "swift",
    "typescript",
];

/// What `code_review.focus` completes to, and for rust.
pub(crate) const FOCUS: [&str; 3] = ["performance", "readability", "security"];
pub(crate) const FOCUS_OF_RUST: [&str; 4] = ["ownership", "performance", "security", "unsafe"];

/// What the `name` of the template completes to.
pub(crate) const TABLES: [&str; 2] = ["orders", "users"];

/// What the server can do, in both eras.
pub(crate) const CAPABILITIES: &str = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"completions":{},"logging":{}}"#;

/// The same with `--interactive`, by which every list can change.
pub(crate) const INTERACTIVE_CAPABILITIES: &str = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{},"logging":{}}"#;

/// How to use the server, for the agent.
pub(crate) const INSTRUCTIONS: &str = "A server for tests and demonstrations: echo, add and get_time answer at once, slow_operation takes its time and reports progress.";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    #[test]
    fn every_tool_definition_is_complete() {
        let (generated, grown) = (generated_tool(7), grown_entry(List::Tools, 7));
        for text in TOOLS
            .into_iter()
            .chain(STATE_TOOLS)
            .chain(INTERACTIVE_TOOLS)
            .chain([ENV_TOOL, EXTRA_TOOL, &generated, &grown])
        {
            let tool = parsed(text);
            for member in ["name", "title", "description", "inputSchema", "annotations"] {
                assert!(tool.get(member).is_some(), "{member} of {text}");
            }
            assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{text}");
            assert_eq!(
                tool["inputSchema"]["properties"]["nonce"]["type"], "string",
                "{text}"
            );
        }
        assert_eq!(parsed(&generated)["name"], "tool_0007");
        assert_eq!(parsed(&grown)["name"], "grown_tool_0007");
    }

    #[test]
    fn every_listed_resource_has_contents_of_its_type() {
        for text in RESOURCES {
            let resource = parsed(text);
            let found = CONTENTS
                .iter()
                .find(|(uri, ..)| resource["uri"] == *uri)
                .unwrap();
            assert_eq!(resource["mimeType"], found.1);
        }
        parsed(CONTENTS[1].2);
        assert_eq!(parsed(RESOURCE_TEMPLATES[0])["uriTemplate"], TEMPLATE_URI);
    }

    #[test]
    fn prompts_and_capabilities_are_json() {
        PROMPTS.into_iter().for_each(|text| drop(parsed(text)));
        parsed(CAPABILITIES);
        parsed(INTERACTIVE_CAPABILITIES);
        for list in [List::Resources, List::Prompts] {
            parsed(&grown_entry(list, 1));
        }
    }
}
