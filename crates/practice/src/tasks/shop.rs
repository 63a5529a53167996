//! Tasks in the shop.

use std::cmp::Reverse;

use super::{Question, counted, greatest, only};
use crate::shop::{
    cart::{Cart, EXPRESS_CENTS},
    catalog::{self, CATEGORIES, Category, Product, money, products},
    checkout::order_number,
};

fn ask(id: &'static str, difficulty: i64, topic: &'static str, words: String, answer: String) -> Question {
    let start = "/shop/".to_owned();
    Question {
        site: "shop",
        domain: "Shopping",
        topic,
        id,
        difficulty,
        words,
        start,
        facts: Vec::new(),
        answer,
    }
}

impl Question {
    fn shown(mut self, facts: &[String]) -> Self {
        self.facts.extend_from_slice(facts);
        self
    }
}

fn product(slug: &str) -> Option<&'static Product> {
    catalog::find(slug).map(|(_, product)| product)
}

fn shelf(slug: &str) -> Option<&'static Category> {
    CATEGORIES.into_iter().find(|category| category.slug == slug)
}

fn specification(slug: &str, name: &str) -> Option<&'static str> {
    let (category, product) = catalog::find(slug)?;
    let place = category.specifications.iter().position(|known| *known == name)?;
    product.specifications.get(place).copied()
}

fn opened(product: &Product) -> String {
    format!("The page of the product “{}” was opened.", product.name)
}

fn searched(what: &str) -> String {
    format!("The list of products was narrowed to {what}.")
}

/// `None` when there is not enough in stock.
fn filled(lines: &[(&str, u32)]) -> Option<Cart> {
    let mut cart = Cart::default();
    lines.iter().all(|(slug, quantity)| cart.add(slug, *quantity)).then_some(cart)
}

pub(super) fn questions() -> Vec<Option<Question>> {
    vec![
        price_on_page("brass-desk-lamp"),
        price("camp-stove"),
        brand("kitchen-radio"),
        battery_life("harbor-wireless-headphones"),
        article_number("copper-watering-can"),
        affordable_audio(),
        cheapest_in_garden(),
        weight_of_the_best_outdoor(),
        best_of_a_brand(),
        pages_of_the_longer_book(),
        bottles_and_stove(),
        total_with_shipping(),
        span_of_lighting(),
        order_of_a_pen(),
        best_of_three_shelves(),
    ]
}

fn price_on_page(slug: &str) -> Option<Question> {
    let product = product(slug)?;
    let words = format!("What is the price of the {}?", product.name);
    let mut question = ask("price-on-page", 1, "Product details", words, product.price());
    question.start = format!("/shop/p/{slug}");
    Some(question.shown(&[format!("The price of the {} is visible.", product.name)]))
}

fn price(slug: &str) -> Option<Question> {
    let product = product(slug)?;
    let words = format!("Find the {} in the shop. How much does it cost?", product.name);
    Some(
        ask("price", 2, "Product details", words, product.price())
            .shown(&[format!("The {} and its price are visible.", product.name)]),
    )
}

fn brand(slug: &str) -> Option<Question> {
    let product = product(slug)?;
    let words = format!("Which brand makes the {}?", product.name);
    Some(
        ask("brand", 2, "Product details", words, product.brand.to_owned())
            .shown(&[format!("The {} and its brand are visible.", product.name)]),
    )
}

fn battery_life(slug: &str) -> Option<Question> {
    let (product, hours) = (product(slug)?, specification(slug, "Battery life")?);
    let words = format!("What battery life do the specifications of the {} give?", product.name);
    Some(
        ask("battery-life", 3, "Product details", words, hours.to_owned()).shown(&[
            opened(product),
            "Its \
         table of specifications is visible."
                .to_owned(),
        ]),
    )
}

fn article_number(slug: &str) -> Option<Question> {
    let (category, product) = catalog::find(slug)?;
    let words = format!("What is the article number of the {}?", product.name);
    Some(
        ask("article-number", 3, "Product details", words, product.article_number(category)).shown(&[
            opened(product),
            "Its \
         table of specifications is visible."
                .to_owned(),
        ]),
    )
}

fn affordable_audio() -> Option<Question> {
    let count = shelf("audio")?.products.iter().filter(|product| product.price_cents <= 8000).count();
    let words = "How many products in the category Audio cost $80 or less?".to_owned();
    Some(
        ask("affordable-audio", 4, "Filters", words, counted(count)?)
            .shown(&[searched("the category Audio"), searched("prices up to $80")]),
    )
}

fn cheapest_in_garden() -> Option<Question> {
    let in_stock = shelf("garden")?.products.iter().filter(|product| product.in_stock());
    let cheapest = greatest(in_stock, |product| Reverse(product.price_cents))?;
    let words = "What is the cheapest product in the category Garden that is in stock?".to_owned();
    Some(
        ask("cheapest-garden", 4, "Sorting", words, cheapest.name.to_owned()).shown(&[
            searched("the category Garden"),
            "The \
         products were sorted or compared by price."
                .to_owned(),
        ]),
    )
}

fn weight_of_the_best_outdoor() -> Option<Question> {
    let admitted =
        shelf("outdoor")?.products.iter().filter(|product| product.in_stock() && product.rating >= 45);
    let dearest = greatest(admitted, |product| product.price_cents)?;
    let words = "Among the Outdoor products that are in stock and rated 4.5 or better, find the most \
         expensive one. What weight do its specifications give?"
        .to_owned();
    let answer = specification(dearest.slug, "Weight")?.to_owned();
    Some(ask("weight-of-best-outdoor", 5, "Filters", words, answer).shown(&[
        searched("the category Outdoor"),
        searched(
            "what \
         is in stock and rated 4.5 or better",
        ),
        opened(dearest),
    ]))
}

fn best_of_a_brand() -> Option<Question> {
    let of_brand = products().map(|(_, product)| product).filter(|product| product.brand == "Thornfield");
    let best = greatest(of_brand, |product| product.rating)?;
    let words = "Which product of the brand Thornfield has the best customer rating?".to_owned();
    Some(
        ask("best-of-brand", 5, "Filters", words, best.name.to_owned()).shown(&[
            searched("the brand Thornfield"),
            "The \
         ratings of its products were compared."
                .to_owned(),
        ]),
    )
}

fn pages_of_the_longer_book() -> Option<Question> {
    let pages =
        |product: &&Product| specification(product.slug, "Pages").and_then(|pages| pages.parse::<u32>().ok());
    let by_author = shelf("books")?
        .products
        .iter()
        .filter(|book| specification(book.slug, "Author") == Some("Ada Fenwick"));
    let books: Vec<_> = by_author.collect();
    let longer = *greatest(&books, |book| pages(book))?;
    let words = "Two books in the shop were written by Ada Fenwick. How many pages does the longer one \
         have?"
        .to_owned();
    let facts: Vec<_> = books.iter().map(|book| opened(book)).collect();
    (books.len() == 2).then_some(())?;
    Some(ask("longer-book", 6, "Comparison", words, pages(&longer)?.to_string()).shown(&facts))
}

fn bottles_and_stove() -> Option<Question> {
    let cart = filled(&[("steel-water-bottle", 2), ("camp-stove", 1)])?;
    let words = "Put two Steel water bottles and one Camp stove into the cart. What total does the cart \
         show?"
        .to_owned();
    let facts = [
        "Two Steel water bottles are in the cart.".to_owned(),
        "One Camp stove is in the cart.".to_owned(),
        "The total of the cart is visible.".to_owned(),
    ];
    Some(ask("bottles-and-stove", 7, "Cart", words, money(cart.total_cents())).shown(&facts))
}

fn total_with_shipping() -> Option<Question> {
    let cart = filled(&[("pocket-speaker", 1), ("pruning-shears", 1)])?;
    let words = "Put one Pocket speaker and one pair of Pruning shears into the cart. What is the total \
         including shipping?"
        .to_owned();
    let facts = [
        "The Pocket speaker is in the cart.".to_owned(),
        "The Pruning shears are in the cart.".to_owned(),
        "Shipping \
         and total of the cart are visible."
            .to_owned(),
    ];
    (cart.shipping_cents() > 0).then_some(())?;
    Some(ask("total-with-shipping", 7, "Cart", words, money(cart.total_cents())).shown(&facts))
}

fn span_of_lighting() -> Option<Question> {
    let in_stock: Vec<_> = shelf("lighting")?.products.iter().filter(|product| product.in_stock()).collect();
    let dearest = greatest(&in_stock, |product| product.price_cents)?;
    let cheapest = greatest(&in_stock, |product| Reverse(product.price_cents))?;
    let words = "By how many dollars do the cheapest and the most expensive Lighting product that are in \
         stock differ in price?"
        .to_owned();
    let facts = [
        searched("the category Lighting"),
        format!("The price of the {} is visible.", cheapest.name),
        format!("The price of the {} is visible.", dearest.name),
    ];
    Some(
        ask("span-of-lighting", 8, "Comparison", words, money(dearest.price_cents - cheapest.price_cents))
            .shown(&facts),
    )
}

fn order_of_a_pen() -> Option<Question> {
    let cart = filled(&[("fountain-pen", 1)])?;
    let words = format!(
        "Buy one Fountain pen with express delivery. Use the name Ada Fenwick, the email ada@example.org, \
             the address Pier 4, Cork, postcode T12, Ireland, and accept the terms. What is the order \
             number? (The total should come to {}.)",
        money(cart.total_cents() + EXPRESS_CENTS)
    );
    let facts = [
        "One Fountain pen, and nothing else, was ordered.".to_owned(),
        "Express delivery was chosen.".to_owned(),
        "The \
         form was filled in with the details given."
            .to_owned(),
        "The page that confirms the order is visible.".to_owned(),
    ];
    only(cart.lines.iter())?;
    Some(ask("order-of-a-pen", 8, "Checkout", words, order_number(&cart, true)).shown(&facts))
}

fn best_of_three_shelves() -> Option<Question> {
    let mut cart = Cart::default();
    let mut facts = Vec::new();
    for slug in ["kitchen", "toys", "books"] {
        let category = shelf(slug)?;
        let best = greatest(category.products.iter().filter(|product| product.in_stock()), |product| {
            product.rating
        })?;
        cart.add(best.slug, 1);
        facts.push(format!("The {} is in the cart as the best rated of {}.", best.name, category.name));
    }
    facts.push("The total of the cart is visible.".to_owned());
    let words = "Put the best rated product in stock of each of the categories Kitchen, Toys and games, \
         and Books into the cart, one of each. What is the total?"
        .to_owned();
    Some(ask("best-of-three-shelves", 9, "Cart", words, money(cart.total_cents())).shown(&facts))
}
