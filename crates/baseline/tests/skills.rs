//! Each skill on a page made for it. Requests are built and replies are parsed as in the collector.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

mod common;

use common::{Episode, TestPage};
use rollout::policy::text_form;

fn first_action(task: &str, page: &TestPage) -> String {
    text_form(&Episode::new(task, 10).act(page))
}

const HOME: TestPage = TestPage {
    title: "Welcome · Old Mill",
    url: "http://site.test/",
    elements: "a Old Mill\nsearch Search the mill\nbutton Search\na Flour\na Bread and rolls\na About us\na Basket (0)",
    text: Some("Old Mill\nSearch\nFlour\nBread and rolls\nAbout us\nBasket (0)\nWelcome to the mill"),
};

#[test]
fn price_is_read_from_the_product_page() {
    let page = TestPage {
        title: "Spelt loaf · Old Mill",
        url: "http://site.test/p/7",
        elements: "a Old Mill\na Bread and rolls\nbutton Add to basket",
        text: Some(
            "Old Mill\nFrom $1.00\nSpelt loaf\nby Stone Bakers\n★★★★☆ 4.2 (8 reviews)\n$4.80\nAdd to basket\nRye loaf\n$3.90",
        ),
    };
    assert_eq!(first_action("What is the price of the Spelt loaf?", &page), "ANSWER [$4.80]");
}

#[test]
fn fact_is_read_beside_its_label() {
    let page = TestPage {
        title: "Lake Orta | Atlas",
        url: "http://site.test/orta",
        elements: "a Atlas\na Piedmont",
        text: Some(
            "Atlas\nLake Orta\nRegion | Piedmont\nMax. depth | 143 m\nArea | 18 km²\nSurveyed | 12 March 1987",
        ),
    };
    for (task, expected) in [
        ("How deep is Lake Orta?", "ANSWER [143 m]"),
        ("In which year was Lake Orta surveyed?", "ANSWER [1987]"),
        ("On which date was Lake Orta surveyed?", "ANSWER [12 March 1987]"),
        ("Which region does Lake Orta belong to?", "ANSWER [Piedmont]"),
    ] {
        assert_eq!(first_action(task, &page), expected, "{task}");
    }
}

#[test]
fn table_is_searched_and_ranked() {
    let page = TestPage {
        title: "List of lakes | Atlas",
        url: "http://site.test/lakes",
        elements: "a Atlas\na Orta\na Como\na Garda",
        text: Some(
            "Lakes\nLake | Depth (m) | Area (km²)\nOrta | 143 | 18\nComo | 425 | 146\nGarda | 346 | 370",
        ),
    };
    for (task, expected) in [
        ("Which is the deepest lake?", "ANSWER [Como]"),
        ("Which is the second largest lake?", "ANSWER [Como]"),
        ("How many km² do the two largest lakes have together?", "ANSWER [516 km²]"),
        ("By how many metres is the deepest lake deeper than the shallowest?", "ANSWER [282 m]"),
        ("How deep is Garda?", "ANSWER [346 m]"),
    ] {
        assert_eq!(first_action(task, &page), expected, "{task}");
    }
}

#[test]
fn good_link_is_preferred_to_search() {
    assert_eq!(first_action("What is the cheapest of the Flour?", &HOME), "Click [4]");
    assert_eq!(first_action("What is the price of the Spelt loaf?", &HOME), "Type [2] [Spelt loaf]");
}

#[test]
fn empty_search_is_retried_with_fewer_words() {
    let nothing = TestPage {
        title: "Results · Old Mill",
        url: "http://site.test/find?q=x",
        elements: HOME.elements,
        text: Some("Old Mill\n0 results for “Spelt loaf”\nNothing matches."),
    };
    let mut episode = Episode::new("What is the price of the Spelt loaf?", 10);
    assert_eq!(text_form(&episode.act(&HOME)), "Type [2] [Spelt loaf]");
    assert_eq!(text_form(&episode.act(&nothing)), "GoBack");
    assert_eq!(text_form(&episode.act(&HOME)), "Type [2] [Spelt]");
}

#[test]
fn consent_banner_is_closed_first() {
    let page = TestPage {
        elements: "button Accept all\nbutton Reject all\na Flour",
        text: Some("We use cookies to measure visits.\nAccept all\nReject all\nFlour"),
        ..HOME
    };
    assert_eq!(first_action("What is the cheapest of the Flour?", &page), "Click [2]");
    // Without a word about cookies, such a button does not belong to a banner.
    let no_banner = TestPage { text: Some("Your offer\nAccept all\nReject all\nFlour"), ..page };
    assert_eq!(first_action("What is the cheapest of the Flour?", &no_banner), "Click [3]");
}

const RESULTS: TestPage = TestPage {
    title: "All goods · Old Mill",
    url: "http://site.test/goods",
    elements: "tick Organic only\nselect Grain\nnumber Price up to ($)\nselect Sort by\nbutton Apply\na Oat flour\na Rye flour\na Next",
    text: Some(
        "Organic only\nGrain\nAny grain\nOat\nRye\nPrice up to ($)\nSort by\nBest match\nPrice: low to high\nPrice: high to low\nApply\n\
         22 goods, page 1 of 2\nOat flour\nMill\n$3.20\nThere\nRye flour\nMill\n$2.90\nThere\nNext",
    ),
};

#[test]
fn filters_are_set_before_counting() {
    let mut episode = Episode::new("How many goods of Rye are organic and cost $4 or less?", 20);
    assert_eq!(text_form(&episode.act(&RESULTS)), "Click [1]");
    assert_eq!(text_form(&episode.act(&RESULTS)), "Type [2] [Rye]");
    // Typing submits the form.
    assert_eq!(text_form(&episode.act(&RESULTS)), "Type [3] [4]");
    let filtered = TestPage {
        url: "http://site.test/goods?organic=1&grain=rye&max=4",
        text: Some(
            "Organic only\nGrain\nAny grain\nOat\nRye\nPrice up to ($)\nSort by\nBest match\nApply\n3 goods\nRye flour\nMill\n$2.90\nThere",
        ),
        ..RESULTS
    };
    assert_eq!(text_form(&episode.act(&filtered)), "ANSWER [3]");
}

#[test]
fn list_is_sorted_for_superlatives() {
    let mut episode = Episode::new("What is the cheapest of the goods?", 20);
    assert_eq!(text_form(&episode.act(&RESULTS)), "Type [4] [Price: low to high]");
    assert_eq!(text_form(&episode.act(&RESULTS)), "Click [5]");
    let sorted = TestPage {
        url: "http://site.test/goods?sort=price",
        elements: "select Sort by\nbutton Apply\na Bran\na Rye flour\na Next",
        text: Some(
            "Sort by\nBest match\nPrice: low to high\nApply\n22 goods, page 1 of 2\nBran\nMill\n$1.10\nThere\nRye flour\nMill\n$2.90\nThere\nNext",
        ),
        ..RESULTS
    };
    assert_eq!(text_form(&episode.act(&sorted)), "ANSWER [Bran]");
}

#[test]
fn selects_are_opened_without_page_text() {
    let closed = TestPage { text: None, ..RESULTS };
    let mut episode = Episode::new("What is the cheapest of the goods?", 20);
    assert_eq!(text_form(&episode.act(&closed)), "Click [4]");
    let open = TestPage {
        elements: "select Sort by\noption Best match\noption Price: low to high\noption Price: high to low",
        ..closed.clone()
    };
    assert_eq!(text_form(&episode.act(&open)), "Click [3]");
    assert_eq!(text_form(&episode.act(&closed)), "Click [5]");
    let sorted = TestPage {
        url: "http://site.test/goods?sort=price",
        elements: "select Sort by\nbutton Apply\na Bran\na Rye flour",
        ..closed
    };
    assert_eq!(text_form(&episode.act(&sorted)), "ANSWER [Bran]");
}

#[test]
fn relation_is_followed_to_the_asked_subject() {
    let painter = TestPage {
        title: "Elin Dahl | Atlas",
        url: "http://site.test/dahl",
        elements: "a Atlas\na Jon Berg",
        text: Some("Elin Dahl\nBorn | 1901 in Oslo\nTeacher | Jon Berg"),
    };
    let teacher = TestPage {
        title: "Jon Berg | Atlas",
        url: "http://site.test/berg",
        elements: "a Atlas\na Nils Holm",
        text: Some("Jon Berg\nBorn | 1870 in Narvik\nTeacher | Nils Holm"),
    };
    let mut episode = Episode::new("In which city was the teacher of the painter Elin Dahl born?", 10);
    assert_eq!(text_form(&episode.act(&painter)), "Click [2]");
    assert_eq!(text_form(&episode.act(&teacher)), "ANSWER [Narvik]");
}

#[test]
fn instructions_are_carried_out_and_reported() {
    let page = |text| TestPage {
        title: "Bells",
        url: "http://site.test/bells",
        elements: "button Ring bell\nbutton Stop",
        text: Some(text),
    };
    let mut episode = Episode::new("Press “Ring bell” twice. What does the last line of the page say?", 10);
    assert_eq!(text_form(&episode.act(&page("Bells\nRing bell\nStop"))), "Click [1]");
    assert_eq!(text_form(&episode.act(&page("Bells\nRing bell\nStop\nrang 1"))), "Click [1]");
    assert_eq!(text_form(&episode.act(&page("Bells\nRing bell\nStop\nrang 1\nrang 2"))), "ANSWER [rang 2]");
}

#[test]
fn items_are_added_and_the_total_read() {
    let loaf = TestPage {
        title: "Spelt loaf · Old Mill",
        url: "http://site.test/p/7",
        elements: "a Old Mill\nsearch Search the mill\nnumber Quantity\nbutton Add to basket",
        text: Some("Old Mill\nSpelt loaf\n$4.80\nQuantity\nAdd to basket"),
    };
    let basket = TestPage {
        title: "Your basket · Old Mill",
        url: "http://site.test/basket",
        elements: "a Old Mill\na Spelt loaf",
        text: Some("Your basket\nSpelt loaf\n$9.60\nSubtotal\n$9.60\nTotal\n$12.10"),
    };
    let mut episode = Episode::new("Put two Spelt loaves into the basket. What is the total?", 10);
    assert_eq!(text_form(&episode.act(&HOME)), "Type [2] [Spelt loaves]");
    assert_eq!(text_form(&episode.act(&loaf)), "Type [3] [2]");
    assert_eq!(text_form(&episode.act(&basket)), "ANSWER [$12.10]");
}

#[test]
fn target_outside_viewport_is_scrolled_to() {
    let page = TestPage {
        title: "Long list",
        url: "http://site.test/l",
        elements: "button Item 1",
        text: Some("Item 1\nItem 2"),
    };
    let mut episode =
        Episode::new("Scroll down until Item 9 appears and click it. What does the page say?", 10);
    assert_eq!(text_form(&episode.act(&page)), "Scroll [down]");
    assert_eq!(text_form(&episode.act_with_outcome(&page, false)), "Scroll [down]");
    assert!(
        !text_form(&episode.act(&page)).starts_with("Scroll"),
        "the page did not move, so it is at its end"
    );
}

#[test]
fn last_step_is_always_an_answer() {
    let mut episode = Episode::new("What is the price of the Spelt loaf?", 1);
    assert!(text_form(&episode.act(&HOME)).starts_with("ANSWER [I could not find"));
    let list = TestPage {
        title: "Bread · Old Mill",
        url: "http://site.test/bread",
        elements: "a Old Mill",
        text: Some("Old Mill\nBread\nThe price of our Spelt loaf is $4.80 today\nAnd more"),
    };
    assert_eq!(
        text_form(&Episode::new("What is the price of the Spelt loaf?", 1).act(&list)),
        "ANSWER [$4.80]"
    );
}

#[test]
fn blocked_site_is_reported() {
    let block_page = TestPage {
        title: "Access denied",
        url: "http://site.test/",
        elements: "tick I am human",
        text: None,
    };
    assert!(
        first_action("How many paintings are there?", &block_page)
            .starts_with("ANSWER [The site does not let me in")
    );
}

#[test]
fn failed_page_is_reopened() {
    let failed = TestPage { title: "", url: "chrome-error://chromewebdata/", elements: "", text: None };
    let mut episode = Episode::new("What is the price of the Spelt loaf?", 9);
    assert_eq!(text_form(&episode.act(&failed)), "Navigate [http://site.test/]");
    let empty = TestPage { url: "http://site.test/", ..failed };
    assert_eq!(text_form(&episode.act(&empty)), "Wait [1.0]");
}

#[test]
fn actions_are_not_repeated_on_a_page() {
    let mut episode = Episode::new("What is the price of the Spelt loaf?", 30);
    let mut done = Vec::new();
    for _ in 0..30 {
        let action = text_form(&episode.act_with_outcome(&HOME, false));
        if action.starts_with("ANSWER") {
            return;
        }
        if !action.starts_with("Scroll") {
            assert!(!done.contains(&action), "{action} repeated after {done:?}");
        }
        done.push(action);
    }
    panic!("the episode did not end: {done:?}");
}
