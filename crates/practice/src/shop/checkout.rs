//! The cart page, the checkout form and the order confirmation.

use axum::{
    Form,
    extract::Query,
    http::StatusCode,
    response::{AppendHeaders, IntoResponse, Redirect, Response},
};
use maud::{Markup, html};

use super::{
    cart::{Cart, EXPRESS_CENTS},
    catalog::{self, format_price},
    layout::page,
};
use crate::{
    forms::{Fields, is_email, reference_number},
    html::count,
};

type Pairs = Vec<(String, String)>;

const COUNTRIES: [&str; 6] = ["Austria", "Canada", "Denmark", "Ireland", "Portugal", "United States"];

pub(super) async fn show_cart(cart: Cart, Query(pairs): Query<Pairs>) -> Response {
    let insufficient = catalog::find(Fields(pairs).get("short")).map(|(_, product)| product);
    let body = html! {
        h1 { "Your cart" }
        @if let Some(product) = insufficient {
            p.notice role="alert" { "There are only " (product.stock) " of “" (product.name) "” in stock." }
        }
        @if cart.lines.is_empty() {
            p id="empty" { "Your cart is empty." }
            p { a.button.primary href="/shop/search" { "Find something" } }
        } @else {
            form id="cart-form" action="/shop/cart/update" method="post" {
                (lines(&cart, true))
                div.row-end {
                    button type="submit" id="update-cart" { "Update quantities" }
                    a.button.primary href="/shop/checkout" id="to-checkout" { "Go to checkout" }
                }
            }
            (totals(&cart, 0))
        }
    };
    page("Your cart", "", &cart, &body)
}

fn lines(cart: &Cart, editable: bool) -> Markup {
    html! {
        table.cart id="cart" {
            thead {
                tr { th { "Product" } th { "Price" } th { "Quantity" } th { "Total" } @if editable { th {} } }
            }
            tbody {
                @for line in &cart.lines {
                    tr {
                        td { a href={ "/shop/p/" (line.product.slug) } { (line.product.name) } }
                        td { (line.product.price()) }
                        td {
                            @if editable {
                                input type="number" min="0" max=(line.product.stock) value=(line.quantity)
                                    name={ "quantity-" (line.product.slug) }
                                    aria-label={ "Quantity of " (line.product.name) };
                            }
                            @else { (line.quantity) }
                        }
                        td { (format_price(line.total_cents())) }
                        @if editable {
                            td {
                                button type="submit" name="remove" value=(line.product.slug)
                                    aria-label={ "Remove " (line.product.name) } { "Remove" }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn totals(cart: &Cart, delivery_cents: u32) -> Markup {
    html! {
        dl.totals id="totals" {
            dt { "Subtotal" } dd id="subtotal" { (format_price(cart.subtotal_cents())) }
            dt { "Shipping" }
            dd id="shipping" {
                @if cart.shipping_cents() == 0 { "Free" } @else { (format_price(cart.shipping_cents())) }
            }
            @if delivery_cents > 0 { dt { "Express delivery" } dd { (format_price(delivery_cents)) } }
            dt { strong { "Total" } } dd id="total" { strong { (format_price(cart.total_cents() + delivery_cents)) } }
        }
    }
}

pub(super) async fn add(mut cart: Cart, Form(pairs): Form<Pairs>) -> Response {
    let fields = Fields(pairs);
    let slug = fields.get("product");
    let in_stock = cart.add(slug, fields.number("quantity").unwrap_or(1).max(1));
    redirect_to_cart(&cart, if in_stock { "" } else { slug })
}

pub(super) async fn update(mut cart: Cart, Form(pairs): Form<Pairs>) -> Response {
    let fields = Fields(pairs);
    let mut insufficient = String::new();
    for (name, value) in &fields.0 {
        if let (Some(slug), Ok(quantity)) = (name.strip_prefix("quantity-"), value.trim().parse())
            && !cart.set(slug, quantity)
        {
            slug.clone_into(&mut insufficient);
        }
    }
    cart.set(fields.get("remove"), 0);
    redirect_to_cart(&cart, &insufficient)
}

/// Stores the cart and redirects to it; the page names the product of which there is not enough.
fn redirect_to_cart(cart: &Cart, insufficient: &str) -> Response {
    let with_notice =
        catalog::find(insufficient).map(|(_, product)| format!("/shop/cart?short={}", product.slug));
    let to = with_notice.unwrap_or_else(|| "/shop/cart".to_owned());
    (AppendHeaders([cart.cookie()]), Redirect::to(&to)).into_response()
}

pub(super) async fn form(cart: Cart) -> Response {
    if cart.lines.is_empty() {
        return Redirect::to("/shop/cart").into_response();
    }
    page("Checkout", "", &cart, &checkout(&cart, &Fields::default(), &[]))
}

pub(super) async fn order(cart: Cart, Form(pairs): Form<Pairs>) -> Response {
    if cart.lines.is_empty() {
        return Redirect::to("/shop/cart").into_response();
    }
    let fields = Fields(pairs);
    let errors = validate(&fields);
    if !errors.is_empty() {
        let body = checkout(&cart, &fields, &errors);
        return (StatusCode::UNPROCESSABLE_ENTITY, page("Checkout", "", &cart, &body)).into_response();
    }
    let body = confirmation(&cart, &fields);
    let emptied = Cart::default();
    (AppendHeaders([emptied.cookie()]), page("Order confirmed", "", &emptied, &body)).into_response()
}

/// Returns the invalid fields with their error messages.
fn validate(fields: &Fields) -> Vec<(&'static str, &'static str)> {
    let mut errors = Vec::new();
    for (name, message) in [
        ("name", "Please enter your name."),
        ("street", "Please enter street and number."),
        ("city", "Please enter a city."),
        ("postcode", "Please enter a postcode."),
    ] {
        if fields.get(name).is_empty() {
            errors.push((name, message));
        }
    }
    if !is_email(fields.get("email")) {
        errors.push(("email", "Please enter an email address such as name@example.org."));
    }
    if !COUNTRIES.contains(&fields.get("country")) {
        errors.push(("country", "Please choose a country."));
    }
    if !fields.has("terms") {
        errors.push(("terms", "Please accept the terms."));
    }
    errors
}

fn is_express(fields: &Fields) -> bool {
    fields.get("delivery") == "express"
}

/// Derives the order number from the ordered items and the delivery alone, so that it is reproducible.
pub(crate) fn order_number(cart: &Cart, express: bool) -> String {
    format!("TG-{}", reference_number(&format!("{} {express}", cart.serialize())))
}

fn confirmation(cart: &Cart, fields: &Fields) -> Markup {
    let express = is_express(fields);
    html! {
        h1 { "Thank you, " (fields.get("name")) "!" }
        p.success { "Your order number is " strong id="order-number" { (order_number(cart, express)) } "." }
        p {
            "A confirmation goes to " (fields.get("email")) ". We deliver to "
            (fields.get("street")) ", " (fields.get("postcode")) " " (fields.get("city")) ", "
            (fields.get("country")) " by " (if express { "express" } else { "standard" }) " delivery."
        }
        (lines(cart, false))
        (totals(cart, if express { EXPRESS_CENTS } else { 0 }))
        p { a.button href="/shop/" { "Back to the shop" } }
    }
}

fn delivery_choice(fields: &Fields) -> Markup {
    html! {
        fieldset {
            legend { "Delivery" }
            label {
                input type="radio" name="delivery" value="standard" id="standard"
                    checked[!is_express(fields)];
                " Standard, 3 to 5 days"
            }
            label {
                input type="radio" name="delivery" value="express" id="express"
                    checked[is_express(fields)];
                " Express, next day (+" (format_price(EXPRESS_CENTS)) ")"
            }
        }
    }
}

fn checkout(cart: &Cart, fields: &Fields, errors: &[(&str, &str)]) -> Markup {
    let error = |name: &str| errors.iter().find(|(field, _)| *field == name).map(|(_, message)| *message);
    let text = |name: &str, label: &str, kind: &str| {
        html! {
            label for=(name) { (label) }
            input type=(kind) id=(name) name=(name) value=(fields.get(name))
                aria-invalid=[error(name).map(|_| "true")];
            @if let Some(message) = error(name) { p.error id={ (name) "-error" } { (message) } }
        }
    };
    html! {
        h1 { "Checkout" }
        @if !errors.is_empty() {
            p.notice role="alert" id="errors" { "Please correct " (count(errors.len(), "field")) "." }
        }
        div.with-sidebar.reversed {
            form.checkout.card id="checkout" action="/shop/checkout" method="post" novalidate {
                (text("name", "Full name", "text"))
                (text("email", "Email", "email"))
                (text("street", "Street and number", "text"))
                (text("city", "City", "text"))
                (text("postcode", "Postcode", "text"))
                label for="country" { "Country" }
                select id="country" name="country" {
                    option value="" { "Choose…" }
                    @for country in COUNTRIES {
                        option selected[fields.get("country") == country] { (country) }
                    }
                }
                @if let Some(message) = error("country") { p.error id="country-error" { (message) } }
                (delivery_choice(fields))
                label for="notes" { "Notes for the driver (optional)" }
                textarea id="notes" name="notes" rows="2" { (fields.get("notes")) }
                label {
                    input type="checkbox" name="terms" id="terms" value="yes" checked[fields.has("terms")];
                    " I accept the terms of sale"
                }
                @if let Some(message) = error("terms") { p.error id="terms-error" { (message) } }
                button.primary type="submit" id="place-order" { "Place order" }
            }
            aside.card { h2 { "Your order" } (lines(cart, false)) (totals(cart, 0)) }
        }
    }
}
