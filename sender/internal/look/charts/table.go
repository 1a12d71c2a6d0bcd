package charts

import "html/template"

// Table says in figures what a chart shows. The first column heads the rows.
type Table struct {
	Heads []string
	Rows  [][]string
}

// HTML is the table, folded up.
func (t *Table) HTML() template.HTML {
	var s svg
	s.add(`<details class="data"><summary>As a table</summary><div tabindex="0" role="region" aria-label="The chart as a table"><table class="plain-table"><thead><tr>`)
	for i, h := range t.Heads {
		s.add(`<th scope="col"%s>%s</th>`, rightAfter(i), escape(h))
	}
	s.add(`</tr></thead><tbody>`)
	for _, r := range t.Rows {
		s.add("\n<tr>")
		for i, v := range r {
			if i == 0 {
				s.add(`<th scope="row">%s</th>`, escape(v))
			} else {
				s.add(`<td class="r">%s</td>`, escape(v))
			}
		}
		s.add(`</tr>`)
	}
	s.add(`</tbody></table></div></details>`)
	return s.html()
}

func rightAfter(i int) string {
	if i == 0 {
		return ""
	}
	return ` class="r"`
}
