//! The read-only pages: front page, search results and product details.

use axum::{
    extract::{Path, Query},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use maud::{Markup, html};

use super::{
    cart::Cart,
    catalog::{self, Category, Product, brands, categories, products},
    images::product_image,
    layout::{availability, card, page, rating},
    search::{PAGE_SIZE, ProductFilter, Sort},
};
use crate::{
    forms::Fields,
    html::{count, pagination},
};

pub(super) async fn front(cart: Cart) -> Response {
    let mut best: Vec<_> = products().filter(|(_, product)| product.in_stock()).collect();
    best.sort_by_key(|(_, product)| std::cmp::Reverse((product.rating, product.reviews)));
    let body = html! {
        section.hero {
            h1 { "Good things, kept simple" }
            p { "Lamps, pots, tents and books that last. Free shipping on orders of $100 and more." }
            a.button.primary href="/shop/search" { "See all " (products().count()) " products" }
        }
        h2 { "Shelves" }
        ul.shelf-list {
            @for category in categories() {
                li {
                    a href={ "/shop/search?category=" (category.slug) } {
                        strong { (category.name) }
                        span.small { (category.about) }
                    }
                }
            }
        }
        h2 { "Best rated" }
        ul.products { @for (category, product) in best.iter().take(8) { (card(category, product)) } }
    };
    page("Welcome", "", &cart, &body)
}

pub(super) async fn results(cart: Cart, Query(pairs): Query<Vec<(String, String)>>) -> Response {
    let fields = Fields(pairs);
    let filter = ProductFilter::from_fields(&fields);
    let results = filter.results();
    let pages = results.len().div_ceil(PAGE_SIZE).max(1);
    let current = (fields.number("page").unwrap_or(1) as usize).clamp(1, pages);
    let first = (current - 1) * PAGE_SIZE;
    let heading = if filter.query.is_empty() {
        "All products".to_owned()
    } else {
        format!("Results for “{}”", filter.query)
    };
    let body = html! {
        div.with-sidebar {
            (filter_form(&filter))
            section {
                h1 { (heading) }
                p id="result-count" {
                    (count(results.len(), "product"))
                    @if pages > 1 { ", page " (current) " of " (pages) }
                }
                @if results.is_empty() { p { "Nothing matches. Try fewer words or wider filters." } }
                ul.products {
                    @for (category, product) in results.iter().skip(first).take(PAGE_SIZE) {
                        (card(category, product))
                    }
                }
                (pagination(current, pages, |number| filter.url(number)))
            }
        }
    };
    page(&heading, &filter.query, &cart, &body)
}

fn filter_form(filter: &ProductFilter) -> Markup {
    let amount =
        |cents: Option<u32>| cents.map(|cents| (f64::from(cents) / 100.0).to_string()).unwrap_or_default();
    html! {
        form.filters.card action="/shop/search" id="filters" {
            input type="hidden" name="q" value=(filter.query);
            fieldset {
                legend { "Category" }
                @for category in categories() {
                    label {
                        input type="checkbox" name="category" value=(category.slug)
                            checked[filter.categories.iter().any(|slug| slug == category.slug)];
                        " " (category.name)
                    }
                }
            }
            @for (name, label, cents) in [
                ("min", "Price from ($)", filter.min_cents),
                ("max", "Price up to ($)", filter.max_cents),
            ] {
                label for=(name) { (label) }
                input type="number" id=(name) name=(name) min="0" step="0.01" value=(amount(cents));
            }
            label for="brand" { "Brand" }
            select id="brand" name="brand" {
                option value="" { "All brands" }
                @for brand in brands() { option value=(brand) selected[filter.brand == brand] { (brand) } }
            }
            label for="rating" { "Rating" }
            select id="rating" name="rating" {
                option value="" { "Any rating" }
                @for (tenths, stars) in [(45, "4.5"), (40, "4.0"), (35, "3.5")] {
                    option value=(stars) selected[filter.min_rating == Some(tenths)] { (stars) " and up" }
                }
            }
            label {
                input type="checkbox" name="in_stock" id="in-stock" value="1" checked[filter.in_stock];
                " In stock only"
            }
            label for="sort" { "Sort by" }
            select id="sort" name="sort" {
                @for (sort, value, name) in Sort::ALL {
                    option value=(value) selected[filter.sort == sort] { (name) }
                }
            }
            button.primary type="submit" id="apply" { "Apply filters" }
            a.small href="/shop/search" { "Clear filters" }
        }
    }
}

pub(super) async fn product(cart: Cart, Path(slug): Path<String>) -> Response {
    let Some((category, product)) = catalog::find(&slug) else {
        let body = html! { h1 { "No such product" } p { a href="/shop/search" { "See all products" } } };
        return (StatusCode::NOT_FOUND, page("No such product", "", &cart, &body)).into_response();
    };
    page(product.name, "", &cart, &details(category, product))
}

fn details(category: &Category, product: &Product) -> Markup {
    let others = category.products.iter().filter(|other| other.slug != product.slug).take(4);
    html! {
        nav.crumbs aria-label="Breadcrumb" {
            a href="/shop/" { "Shop" } " › "
            a href={ "/shop/search?category=" (category.slug) } { (category.name) } " › " (product.name)
        }
        article.detail {
            div.frame { (product_image(category, product)) }
            div {
                h1 { (product.name) }
                p { "by " a href=(brand_url(product.brand)) { (product.brand) } }
                p { (rating(product)) }
                p.price.large id="price" { (product.price()) }
                p id="availability" {
                    (availability(product))
                    @if product.in_stock() { span.small { " · " (product.stock) " in stock" } }
                }
                p { (product.description) }
                form.buy action="/shop/cart/add" method="post" {
                    input type="hidden" name="product" value=(product.slug);
                    label for="quantity" { "Quantity" }
                    input type="number" id="quantity" name="quantity" value="1" min="1"
                        max=(product.stock.max(1)) disabled[!product.in_stock()];
                    button.primary type="submit" id="add-to-cart" disabled[!product.in_stock()] {
                        "Add to cart"
                    }
                }
            }
        }
        h2 { "Specifications" }
        table.specifications id="specifications" {
            tr { th { "Article number" } td { (product.article_number(category)) } }
            tr { th { "Brand" } td { (product.brand) } }
            tr { th { "Colour" } td { (product.colour) } }
            @for (name, value) in category.specifications.iter().zip(product.specifications) {
                tr { th { (name) } td { (value) } }
            }
        }
        h2 { "More from " (category.name) }
        ul.products { @for other in others { (card(category, other)) } }
    }
}

fn brand_url(brand: &str) -> String {
    ProductFilter { brand: brand.to_owned(), ..ProductFilter::default() }.url(1)
}
