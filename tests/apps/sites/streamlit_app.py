"""A Streamlit page that loads its data before it shows the second half of its controls, as most real ones do."""

import time

import pandas
import streamlit


@streamlit.cache_data
def load_data() -> pandas.DataFrame:
    time.sleep(0.4)
    return pandas.DataFrame({"day": range(30), "visitors": [40 + (day * 7) % 23 for day in range(30)]})


streamlit.title("Visitors")
with streamlit.sidebar:
    streamlit.selectbox("Country", ["Norway", "Chile", "Japan"])
    streamlit.checkbox("Weekends only")
    streamlit.slider("Days", 1, 30, 14)
data = load_data()
streamlit.text_input("Search")
streamlit.radio("Unit", ["Visitors", "Pages"])
first, second = streamlit.tabs(["Table", "Notes"])
first.dataframe(data, height=150)
second.text_area("Remarks")
if streamlit.button("Details"):
    time.sleep(0.3)
    streamlit.button("Export")
    streamlit.button("Share")
streamlit.line_chart(data, x="day", y="visitors")
