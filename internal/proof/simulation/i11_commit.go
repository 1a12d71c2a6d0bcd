package simulation

// I11: no 2xx before the commit.

// checkAnswer is called as the answer is written.
func (e *endpoint) checkAnswer(status int) {
	if status < 200 || status > 299 {
		return
	}
	d := e.now.post.d
	if _, committed := e.ends[d.event.id]; !committed {
		d.w.violated("I11", "%s answers %d to %s, of which it has committed nothing", e.s.name, status, d.event.name)
	}
}
