//! The shop over HTTP: search, filters, pages, cart, checkout.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use common::{client, get, post, sites, visitor};

const ORDER: [(&str, &str); 7] = [
    ("name", "Ada Fenwick"),
    ("email", "ada@example.org"),
    ("street", "Pier 4"),
    ("city", "Cork"),
    ("postcode", "T12"),
    ("country", "Ireland"),
    ("terms", "yes"),
];

#[tokio::test]
async fn search_applies_filters_and_pagination() {
    let sites = sites();
    let all = get(&sites, "/shop/search").await;
    assert!(all.contains("72 products, page 1 of 6"));
    assert_eq!(all.matches("<li class=\"product\">").count(), 12);
    let last = get(&sites, "/shop/search?page=6").await;
    assert!(last.contains("aria-current=\"page\">6<") && !last.contains("rel=\"next\""));
    let filtered =
        get(&sites, "/shop/search?q=lamp&category=lighting&max=60&in_stock=1&sort=price-asc").await;
    let lamps: Vec<_> =
        filtered.split("<span class=\"name\">").skip(1).map(|rest| rest.split('<').next().unwrap()).collect();
    assert_eq!(lamps, ["Bedside dome lamp", "Brass desk lamp"], "cheapest first, nothing above $60");
    assert!(filtered.contains("value=\"lighting\" checked"), "the form keeps the value");
    assert!(get(&sites, "/shop/search?q=zeppelin").await.contains("Nothing matches"));
}

#[tokio::test]
async fn search_query_is_html_escaped() {
    let sites = sites();
    let page = get(&sites, "/shop/search?q=%3Cscript%3Ealert(1)%3C%2Fscript%3E").await;
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script>alert"));
}

#[tokio::test]
async fn cart_is_filled_changed_and_emptied() {
    let sites = sites();
    let visitor = visitor();
    let added =
        post(&visitor, &sites, "/shop/cart/add", &[("product", "brass-desk-lamp"), ("quantity", "2")]).await;
    let page = added.text().await.unwrap();
    assert!(page.contains("Cart (2)") && page.contains("id=\"total\"><strong>$118.00<"));
    post(&visitor, &sites, "/shop/cart/add", &[("product", "kitchen-radio")]).await;
    let changed = [("quantity-brass-desk-lamp", "1"), ("quantity-kitchen-radio", "1")];
    let page = post(&visitor, &sites, "/shop/cart/update", &changed).await.text().await.unwrap();
    assert!(page.contains("id=\"subtotal\">$127.50<") && page.contains("id=\"shipping\">Free<"));
    let removed =
        [("quantity-brass-desk-lamp", "1"), ("quantity-kitchen-radio", "1"), ("remove", "kitchen-radio")];
    let page = post(&visitor, &sites, "/shop/cart/update", &removed).await.text().await.unwrap();
    assert!(page.contains("id=\"shipping\">$6.90<") && page.contains("<strong>$65.90<"));
    let page = post(&visitor, &sites, "/shop/cart/update", &[("quantity-brass-desk-lamp", "0")]).await;
    assert!(page.text().await.unwrap().contains("Your cart is empty."));
}

#[tokio::test]
async fn cart_is_visible_to_its_visitor_only() {
    let sites = sites();
    let (first, second) = (visitor(), visitor());
    post(&first, &sites, "/shop/cart/add", &[("product", "kitchen-radio")]).await;
    let page = second.get(sites.url("/shop/cart")).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("Your cart is empty."));
}

#[tokio::test]
async fn quantity_above_stock_is_refused() {
    let sites = sites();
    let page =
        post(&visitor(), &sites, "/shop/cart/add", &[("product", "turntable-nine"), ("quantity", "9")]).await;
    assert!(page.text().await.unwrap().contains("There are only 4 of “Turntable Nine” in stock."));
    let page = post(&visitor(), &sites, "/shop/cart/add", &[("product", "family-tent")]).await;
    assert!(page.text().await.unwrap().contains("Your cart is empty."));
    assert!(get(&sites, "/shop/p/family-tent").await.contains("id=\"add-to-cart\" disabled"));
}

#[tokio::test]
async fn order_number_is_reproducible() {
    let sites = sites();
    let mut numbers = Vec::new();
    for _ in 0..2 {
        let visitor = visitor();
        post(&visitor, &sites, "/shop/cart/add", &[("product", "brass-desk-lamp")]).await;
        let invalid =
            post(&visitor, &sites, "/shop/checkout", &[("name", "Ada Fenwick"), ("email", "ada")]).await;
        assert_eq!(invalid.status(), 422);
        let page = invalid.text().await.unwrap();
        assert!(page.contains("Please correct 6 fields.") && page.contains("id=\"email-error\""));
        assert!(page.contains("value=\"Ada Fenwick\""), "the valid value is kept");
        let page = post(&visitor, &sites, "/shop/checkout", &ORDER).await.text().await.unwrap();
        assert!(page.contains("Thank you, Ada Fenwick!") && page.contains("Cart (0)"));
        numbers
            .push(page.split("id=\"order-number\">").nth(1).unwrap().split('<').next().unwrap().to_owned());
        let after = visitor.get(sites.url("/shop/cart")).send().await.unwrap().text().await.unwrap();
        assert!(after.contains("Your cart is empty."));
    }
    assert!(numbers[0].starts_with("TG-") && numbers[0] == numbers[1]);
}

#[tokio::test]
async fn express_delivery_costs_extra() {
    let sites = sites();
    let visitor = visitor();
    post(&visitor, &sites, "/shop/cart/add", &[("product", "brass-desk-lamp")]).await;
    let form: Vec<_> = ORDER.into_iter().chain([("delivery", "express")]).collect();
    let page = post(&visitor, &sites, "/shop/checkout", &form).await.text().await.unwrap();
    assert!(page.contains("<strong>$78.40<"), "59.00 + 6.90 + 12.50");
}

#[tokio::test]
async fn checkout_with_empty_cart_redirects() {
    let sites = sites();
    let response = client().post(sites.url("/shop/checkout")).form(&ORDER).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["location"]),
        (303, &"/shop/cart".parse().unwrap())
    );
}

#[tokio::test]
async fn unknown_product_is_not_found() {
    let sites = sites();
    assert_eq!(client().get(sites.url("/shop/p/zeppelin")).send().await.unwrap().status(), 404);
}
