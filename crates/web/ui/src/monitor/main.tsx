import { render } from 'preact';
import '../common/theme.css';
import './monitor.css';
import { App } from './App';
import { Store } from './store';

const root = document.getElementById('app');
const store = new Store();
store.connect();
if (root) render(<App store={store} />, root);
