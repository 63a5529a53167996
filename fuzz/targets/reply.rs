//! Model replies: every reply gives an action that the browser can run, parsing takes linear time, and the text of the
//! action parses to the same action.
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
        let resolved = ResolvedAction::resolve(&reply.action, &context).expect("every action can be resolved");
        // Free text may contain what looks like its own end, so that only other arguments survive a round trip.
        let free_text = ["text", "url", "goback_to"];
        if !free_text.iter().any(|name| reply.action.arguments.contains_key(*name)) {
            let reparsed = Reply::parse(&reply.action.action_string, mode);
            assert_eq!(ResolvedAction::resolve(&reparsed.action, &context), Ok(resolved), "{}", reply.action.action_string);
        }
    }
});
