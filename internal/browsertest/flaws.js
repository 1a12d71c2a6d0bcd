// flaws lists, in sentences, what would hinder people.
var flaws = (() => {
	const all = s => [...document.querySelectorAll(s)], seen = e => e.getClientRects().length > 0;
	const root = document.documentElement, tag = e => e.outerHTML.slice(0, 80);
	function content() {
		const found = [];
		if (!root.lang || !document.title) found.push('no language, or no title');
		if (all('h1').length !== 1 || all('main').length !== 1) found.push('not one h1 and one main');
		let level = 0;
		for (const h of all('h1,h2,h3,h4')) {
			if (+h.tagName[1] > level + 1) found.push('a heading skips a level: ' + h.textContent);
			level = +h.tagName[1];
		}
		const ids = all('[id]').map(e => e.id);
		for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) found.push('twice the id ' + id);
		for (const e of all('input:not([type=hidden]),select,textarea')) if (!e.ariaLabel && !(e.labels.length && e.labels[0].textContent.trim())) found.push('no label: ' + tag(e));
		for (const e of all('a,button,summary')) if (!e.ariaLabel && !e.textContent.trim()) found.push('no name: ' + tag(e));
		for (const e of all('[aria-describedby]')) if (!document.getElementById(e.getAttribute('aria-describedby'))) found.push('describes nothing: ' + tag(e));
		for (const t of all('table')) {
			if (!t.querySelector('thead th[scope=col]')) found.push('a table without headings');
			const columns = t.querySelectorAll('thead th').length;
			for (const r of t.querySelectorAll('tbody tr')) if (r.children.length !== columns) found.push('a row of ' + r.children.length + ' cells in a table of ' + columns);
		}
		for (const e of all('script:not([src]),iframe,object,embed,img,[style]')) found.push('not allowed: ' + tag(e));
		for (const e of all('*')) for (const a of e.attributes) if (a.name.startsWith('on')) found.push('a handler: ' + tag(e));
		for (const e of all('a,button,input:not([type=hidden]),select,summary,pre')) if (seen(e) && e.tabIndex < 0) found.push('no key reaches ' + tag(e));
		if ('hacked' in window) found.push("a stranger's script has run");
		return found;
	}
	function layout() {
		const found = [];
		if (root.scrollWidth > root.clientWidth) found.push('it is ' + root.scrollWidth + ' wide, the screen ' + root.clientWidth);
		// A finger and a keyboard find no title.
		for (const e of all('main dl.heads dd')) if (e.scrollWidth > e.clientWidth) found.push('the end of a header is cut off: ' + tag(e));
		const cut = e => { for (e = e.parentElement; e; e = e.parentElement) if (getComputedStyle(e).overflowX !== 'visible') return true; return false; };
		for (const e of all('main *')) {
			const r = e.getBoundingClientRect();
			if (r.width > 1 && (r.left < 0 || r.right > root.clientWidth) && !e.closest('svg, details:not([open]), [popover]:not(:popover-open)') && !cut(e)) found.push('it hangs over the edge: ' + tag(e));
		}
		return found;
	}
	const channels = c => c.match(/[\d.]+/g).map(Number);
	const light = c => {
		const [r, g, b] = channels(c).map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	function contrast() {
		const grounds = new Map(), pale = new Set();
		const behind = e => {
			if (!e) return matchMedia('(prefers-color-scheme: dark)').matches ? 'rgb(18,18,18)' : 'rgb(255,255,255)';
			if (!grounds.has(e)) {
				const c = getComputedStyle(e).backgroundColor, parts = channels(c);
				grounds.set(e, parts.length < 4 || parts[3] > 0 ? c : behind(e.parentElement));
			}
			return grounds.get(e);
		};
		for (const e of all('body *')) {
			if (e.closest('svg') || ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || !seen(e)) continue;
			const a = light(getComputedStyle(e).color), b = light(behind(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
			if (ratio < 4.5) pale.add('contrast ' + ratio.toFixed(2) + ': ' + e.tagName + '.' + e.className);
		}
		return [...pale];
	}
	return { content, layout, contrast };
})();
