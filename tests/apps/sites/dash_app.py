"""A Dash page with chained callbacks. Its first argument is the port."""

import sys
import time

from dash import Dash, Input, Output, dcc, html

app = Dash(__name__)
app.layout = html.Div(
    [
        html.H1("Harbour"),
        dcc.Dropdown(["Oslo", "Bergen"], "Oslo", id="port"),
        dcc.Checklist(["Ferries", "Freight"], ["Ferries"], id="kinds"),
        dcc.Input(id="ship", placeholder="Ship"),
        dcc.Tabs([dcc.Tab(label="Arrivals", value="arrivals"), dcc.Tab(label="Map", value="map")], id="tabs", value="arrivals"),
        html.Div(id="panel"),
        dcc.Graph(id="graph"),
        html.Button("Load berths", id="load"),
        html.Div(id="berths"),
    ]
)


@app.callback(Output("panel", "children"), Input("tabs", "value"))
def show_panel(tab: str):
    time.sleep(0.2)
    names = ["Today", "Tomorrow"] if tab == "arrivals" else ["Zoom in", "Zoom out", "Centre"]
    return [html.Button(name) for name in names]


@app.callback(Output("graph", "figure"), Input("port", "value"))
def draw(port: str):
    time.sleep(0.2)
    return {"data": [{"x": [1, 2, 3], "y": [4, 1, 2], "type": "bar"}], "layout": {"title": {"text": port}, "height": 200}}


@app.callback(Output("berths", "children"), Input("load", "n_clicks"), prevent_initial_call=True)
def load_berths(_: int):
    time.sleep(0.3)
    return [html.Button(f"Berth {number}") for number in range(1, 4)]


app.run(host="127.0.0.1", port=int(sys.argv[1]), debug=False)
