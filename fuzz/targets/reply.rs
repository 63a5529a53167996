//! What a model says: some action comes of it that means something to the browser, in work linear in its length, and the
//! action's own sentence is understood again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::InteractionMode::{Coordinates, SetOfMarks};
use rollout::policy::{Reply, ActionContext, ResolvedAction};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for mode in [Coordinates, SetOfMarks] {
        let (reply, steps) = Reply::parse_counted(&text, mode);
        assert!(steps <= 30 * text.len() + 10_000, "{steps} steps for {} bytes", text.len());
        let context = ActionContext { mode, width: 1280, height: 768, start_url: "https://start.example" };
        let step = ResolvedAction::resolve(&reply.action, &context).expect("every action means something");
        // Text may hold what looks like the end of it; targets and directions may not.
        let texts = ["text", "url", "goback_to"];
        if !texts.iter().any(|name| reply.action.arguments.contains_key(*name)) {
            let again = Reply::parse(&reply.action.action_string, mode);
            assert_eq!(ResolvedAction::resolve(&again.action, &context), Ok(step), "{}", reply.action.action_string);
        }
    }
});
