package simulation

import (
	"net/http"
	"time"

	"github.com/surehook/surehook/sender/dispatch"
)

// I2: a rolled-back publish is never posted.

func (w *world) checkUndone(id string) {
	if w.undone[id] {
		w.violated("I2", "an event is posted whose publish was rolled back")
	}
}

// posted is called for each POST, as it goes onto the wire.
func (w *world) posted(p *process, c *dispatch.Claimed, r *http.Request, body []byte, number int, timeout time.Duration) *post {
	w.attempts++
	w.checkUndone(r.Header.Get("Webhook-Id"))
	d := w.byKey[c.Key]
	if d == nil {
		w.violated("I3", "an attempt is made of what was never claimed")
		return nil
	}
	d.say("%d is posted by process %d", number, p.no)
	post := &post{d: d, number: number, token: c.Token, at: w.now, timeout: timeout}
	w.checkBytes(p, d, r, body)
	w.checkPost(d, p, c, post)
	d.posts[number] = post
	if d.leased != nil && d.leased.token == c.Token {
		w.checkDue(d, "posted")
	}
	return post
}
