package simulation

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
)

// I4: a duplicate has the same id and the same bytes, and a fresh timestamp and
// signature.

func (w *world) checkBytes(p *process, d *delivery, r *http.Request, body []byte) {
	e := d.event
	if id := r.Header.Get("Webhook-Id"); id != e.id {
		w.violated("I4", "%s is posted under the id of %s", d.name, w.eventName(id))
	}
	w.checkVersion(d, body)
	stamp := r.Header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	off := w.now.Sub(time.Unix(seconds, 0))
	if err != nil || off < -time.Millisecond || off > time.Second+p.behind {
		w.violated("I4", "the timestamp of %s is %q, %v old, and its process can be behind by %v", d.name, stamp, off, p.behind)
	}
	signature := r.Header.Get("Webhook-Hmac-Sha256")
	for _, s := range d.sub.owner.secrets {
		mac := hmac.New(sha256.New, []byte(s.secret.Reveal()))
		mac.Write([]byte(stamp))
		mac.Write([]byte("."))
		mac.Write(body)
		if hex.EncodeToString(mac.Sum(nil)) == signature {
			if ended := !s.until.IsZero() && s.until.Before(w.now.Add(-w.config.Lease-p.behind)); ended {
				w.violated("I4", "%s is signed with a secret that ended at %v", d.name, s.until.Sub(begins))
			}
			return
		}
	}
	w.violated("I4", "the signature of %s is that of no secret of %s", d.name, d.sub.owner.id)
}
