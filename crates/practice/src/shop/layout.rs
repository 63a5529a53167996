//! The layout of every page of the shop, and fragments that show a product.

use axum::response::Response;
use maud::{Markup, html};

use super::{
    cart::Cart,
    catalog::{Category, Product, categories},
    images::product_image,
};
use crate::html;

pub(crate) const NAME: &str = "Tidewater Goods";

pub(crate) fn page(title: &str, query: &str, cart: &Cart, body: &Markup) -> Response {
    html::page(&format!("{title} · {NAME}"), "shop", &frame(query, cart, body))
}

fn frame(query: &str, cart: &Cart, body: &Markup) -> Markup {
    html! {
        header.bar {
            a.brand href="/shop/" { (NAME) }
            (html::search_form("/shop/search", query, "Search the shop"))
            a.cart-link href="/shop/cart" id="cart-link" { "Cart (" (cart.count()) ")" }
        }
        nav.shelves aria-label="Categories" {
            @for category in categories() {
                a href={ "/shop/search?category=" (category.slug) } { (category.name) }
            }
        }
        main { (body) }
        footer { p.small { (NAME) " is a practice shop. Nothing here is for sale." } }
    }
}

pub(crate) fn card(category: &Category, product: &Product) -> Markup {
    html! {
        li.product {
            a href={ "/shop/p/" (product.slug) } {
                (product_image(category, product))
                span.name { (product.name) }
            }
            span.small { (product.brand) }
            span { (rating(product)) }
            span.price { (product.price()) }
            (availability(product))
        }
    }
}

pub(crate) fn rating(product: &Product) -> Markup {
    let full = ((product.rating + 5) / 10) as usize;
    html! {
        span.stars aria-hidden="true" { ("★".repeat(full)) ("☆".repeat(5 - full)) }
        " " (product.stars()) " "
        span.small { "(" (product.reviews) " reviews)" }
    }
}

pub(crate) fn availability(product: &Product) -> Markup {
    html! {
        @match product.stock {
            0 => span.sold-out { "Out of stock" },
            left @ 1..=9 => span.few { "Only " (left) " left" },
            _ => span.in-stock { "In stock" },
        }
    }
}
