//! Tasks in the shop.

use std::cmp::Reverse;

use super::{Question, exactly_one, nonzero, unique_max};
use crate::shop::{
    cart::{Cart, EXPRESS_CENTS},
    catalog::{self, Category, Product, categories, format_price, products},
    checkout::order_number,
};

fn question(
    id: &'static str,
    difficulty: i64,
    topic: &'static str,
    text: String,
    answer: String,
) -> Question {
    let start = "/shop/".to_owned();
    Question {
        site: "shop",
        domain: "Shopping",
        topic,
        id,
        difficulty,
        text,
        start,
        criteria: Vec::new(),
        answer,
    }
}

impl Question {
    fn with_criteria(mut self, criteria: &[String]) -> Self {
        self.criteria.extend_from_slice(criteria);
        self
    }
}

fn product(slug: &str) -> Option<&'static Product> {
    catalog::find(slug).map(|(_, product)| product)
}

fn category(slug: &str) -> Option<&'static Category> {
    categories().iter().find(|category| category.slug == slug)
}

fn specification(slug: &str, name: &str) -> Option<&'static str> {
    let (category, product) = catalog::find(slug)?;
    let index = category.specifications.iter().position(|known| *known == name)?;
    product.specifications.get(index).copied()
}

fn product_opened(product: &Product) -> String {
    format!("The page of the product “{}” was opened.", product.name)
}

fn list_narrowed_to(what: &str) -> String {
    format!("The list of products was narrowed to {what}.")
}

/// Returns a cart with these items; `None` if not enough is in stock.
fn cart_with(lines: &[(&str, u32)]) -> Option<Cart> {
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
        best_of_three_categories(),
    ]
}

fn price_on_page(slug: &str) -> Option<Question> {
    let product = product(slug)?;
    let text = format!("What is the price of the {}?", product.name);
    let mut task = question("price-on-page", 1, "Product details", text, product.price());
    task.start = format!("/shop/p/{slug}");
    Some(task.with_criteria(&[format!("The price of the {} is visible.", product.name)]))
}

fn price(slug: &str) -> Option<Question> {
    let product = product(slug)?;
    let text = format!("Find the {} in the shop. How much does it cost?", product.name);
    Some(
        question("price", 2, "Product details", text, product.price())
            .with_criteria(&[format!("The {} and its price are visible.", product.name)]),
    )
}

fn brand(slug: &str) -> Option<Question> {
    let product = product(slug)?;
    let text = format!("Which brand makes the {}?", product.name);
    Some(
        question("brand", 2, "Product details", text, product.brand.to_owned())
            .with_criteria(&[format!("The {} and its brand are visible.", product.name)]),
    )
}

fn battery_life(slug: &str) -> Option<Question> {
    let (product, hours) = (product(slug)?, specification(slug, "Battery life")?);
    let text = format!("What battery life do the specifications of the {} give?", product.name);
    Some(
        question("battery-life", 3, "Product details", text, hours.to_owned())
            .with_criteria(&[product_opened(product), "Its table of specifications is visible.".to_owned()]),
    )
}

fn article_number(slug: &str) -> Option<Question> {
    let (category, product) = catalog::find(slug)?;
    let text = format!("What is the article number of the {}?", product.name);
    Some(
        question("article-number", 3, "Product details", text, product.article_number(category))
            .with_criteria(&[product_opened(product), "Its table of specifications is visible.".to_owned()]),
    )
}

fn affordable_audio() -> Option<Question> {
    let count = category("audio")?.products.iter().filter(|product| product.price_cents <= 8000).count();
    let text = "How many products in the category Audio cost $80 or less?".to_owned();
    Some(
        question("affordable-audio", 4, "Filters", text, nonzero(count)?)
            .with_criteria(&[list_narrowed_to("the category Audio"), list_narrowed_to("prices up to $80")]),
    )
}

fn cheapest_in_garden() -> Option<Question> {
    let in_stock = category("garden")?.products.iter().filter(|product| product.in_stock());
    let cheapest = unique_max(in_stock, |product| Reverse(product.price_cents))?;
    let text = "What is the cheapest product in the category Garden that is in stock?".to_owned();
    Some(question("cheapest-garden", 4, "Sorting", text, cheapest.name.to_owned()).with_criteria(&[
        list_narrowed_to("the category Garden"),
        "The products were sorted or compared by price.".to_owned(),
    ]))
}

fn weight_of_the_best_outdoor() -> Option<Question> {
    let candidates =
        category("outdoor")?.products.iter().filter(|product| product.in_stock() && product.rating >= 45);
    let most_expensive = unique_max(candidates, |product| product.price_cents)?;
    let text = "Among the Outdoor products that are in stock and rated 4.5 or better, find the most \
         expensive one. What weight do its specifications give?"
        .to_owned();
    let answer = specification(most_expensive.slug, "Weight")?.to_owned();
    Some(question("weight-of-best-outdoor", 5, "Filters", text, answer).with_criteria(&[
        list_narrowed_to("the category Outdoor"),
        list_narrowed_to("what is in stock and rated 4.5 or better"),
        product_opened(most_expensive),
    ]))
}

fn best_of_a_brand() -> Option<Question> {
    let of_brand = products().map(|(_, product)| product).filter(|product| product.brand == "Thornfield");
    let best = unique_max(of_brand, |product| product.rating)?;
    let text = "Which product of the brand Thornfield has the best customer rating?".to_owned();
    Some(question("best-of-brand", 5, "Filters", text, best.name.to_owned()).with_criteria(&[
        list_narrowed_to("the brand Thornfield"),
        "The ratings of its products were compared.".to_owned(),
    ]))
}

fn pages_of_the_longer_book() -> Option<Question> {
    let pages =
        |product: &&Product| specification(product.slug, "Pages").and_then(|pages| pages.parse::<u32>().ok());
    let by_author = category("books")?
        .products
        .iter()
        .filter(|book| specification(book.slug, "Author") == Some("Ada Fenwick"));
    let books: Vec<_> = by_author.collect();
    let longer = *unique_max(&books, |book| pages(book))?;
    let text = "Two books in the shop were written by Ada Fenwick. How many pages does the longer one have?"
        .to_owned();
    let criteria: Vec<_> = books.iter().map(|book| product_opened(book)).collect();
    (books.len() == 2).then_some(())?;
    Some(question("longer-book", 6, "Comparison", text, pages(&longer)?.to_string()).with_criteria(&criteria))
}

fn bottles_and_stove() -> Option<Question> {
    let cart = cart_with(&[("steel-water-bottle", 2), ("camp-stove", 1)])?;
    let text = "Put two Steel water bottles and one Camp stove into the cart. What total does the cart show?"
        .to_owned();
    let criteria = [
        "Two Steel water bottles are in the cart.".to_owned(),
        "One Camp stove is in the cart.".to_owned(),
        "The total of the cart is visible.".to_owned(),
    ];
    Some(
        question("bottles-and-stove", 7, "Cart", text, format_price(cart.total_cents()))
            .with_criteria(&criteria),
    )
}

fn total_with_shipping() -> Option<Question> {
    let cart = cart_with(&[("pocket-speaker", 1), ("pruning-shears", 1)])?;
    let text = "Put one Pocket speaker and one pair of Pruning shears into the cart. What is the total \
         including shipping?"
        .to_owned();
    let criteria = [
        "The Pocket speaker is in the cart.".to_owned(),
        "The Pruning shears are in the cart.".to_owned(),
        "Shipping and total of the cart are visible.".to_owned(),
    ];
    (cart.shipping_cents() > 0).then_some(())?;
    Some(
        question("total-with-shipping", 7, "Cart", text, format_price(cart.total_cents()))
            .with_criteria(&criteria),
    )
}

fn span_of_lighting() -> Option<Question> {
    let in_stock: Vec<_> =
        category("lighting")?.products.iter().filter(|product| product.in_stock()).collect();
    let most_expensive = unique_max(&in_stock, |product| product.price_cents)?;
    let cheapest = unique_max(&in_stock, |product| Reverse(product.price_cents))?;
    let text = "By how many dollars do the cheapest and the most expensive Lighting product that are in \
         stock differ in price?"
        .to_owned();
    let criteria = [
        list_narrowed_to("the category Lighting"),
        format!("The price of the {} is visible.", cheapest.name),
        format!("The price of the {} is visible.", most_expensive.name),
    ];
    Some(
        question(
            "span-of-lighting",
            8,
            "Comparison",
            text,
            format_price(most_expensive.price_cents - cheapest.price_cents),
        )
        .with_criteria(&criteria),
    )
}

fn order_of_a_pen() -> Option<Question> {
    let cart = cart_with(&[("fountain-pen", 1)])?;
    let text = format!(
        "Buy one Fountain pen with express delivery. Use the name Ada Fenwick, the email ada@example.org, \
             the address Pier 4, Cork, postcode T12, Ireland, and accept the terms. What is the order \
             number? (The total should come to {}.)",
        format_price(cart.total_cents() + EXPRESS_CENTS)
    );
    let criteria = [
        "One Fountain pen, and nothing else, was ordered.".to_owned(),
        "Express delivery was chosen.".to_owned(),
        "The form was filled in with the details given.".to_owned(),
        "The page that confirms the order is visible.".to_owned(),
    ];
    exactly_one(cart.lines.iter())?;
    Some(question("order-of-a-pen", 8, "Checkout", text, order_number(&cart, true)).with_criteria(&criteria))
}

fn best_of_three_categories() -> Option<Question> {
    let mut cart = Cart::default();
    let mut criteria = Vec::new();
    for slug in ["kitchen", "toys", "books"] {
        let category = category(slug)?;
        let best = unique_max(category.products.iter().filter(|product| product.in_stock()), |product| {
            product.rating
        })?;
        cart.add(best.slug, 1);
        criteria.push(format!("The {} is in the cart as the best rated of {}.", best.name, category.name));
    }
    criteria.push("The total of the cart is visible.".to_owned());
    let text = "Put the best rated product in stock of each of the categories Kitchen, Toys and games, \
         and Books into the cart, one of each. What is the total?"
        .to_owned();
    Some(
        question("best-of-three-shelves", 9, "Cart", text, format_price(cart.total_cents()))
            .with_criteria(&criteria),
    )
}
