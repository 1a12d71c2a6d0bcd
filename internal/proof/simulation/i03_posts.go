package simulation

import "github.com/surehook/surehook/sender/dispatch"

// I3: there are no more POSTs of a delivery than attempts recorded, interrupted ones
// included. Without faults there are as many.

// checkPost checks a POST against its claim.
func (w *world) checkPost(d *delivery, p *process, c *dispatch.Claimed, made *post) {
	if before := d.posts[made.number]; before != nil {
		w.violated("I3", "attempt %d of %s is posted a second time, first at %v", made.number, d.name, before.at.Sub(begins))
	}
	if made.number != c.Number {
		w.violated("I3", "attempt %d of %s says that it is %d", c.Number, d.name, made.number)
	}
	if l := d.leased; l != nil && l.over && l.token == c.Token && p.behind == 0 {
		w.violated("I3", "attempt %d of %s is begun, and its process was taken over", made.number, d.name)
	}
	if l := d.leased; l != nil && l.token == c.Token && (l.by != p || l.life != p.life) {
		w.violated("I3", "attempt %d of %s is posted by process %d, and was claimed by %d", made.number, d.name, p.no, l.by.no)
	}
}

// checkPosts checks the POSTs of a delivery against its attempts.
func (w *world) checkPosts(d *delivery) {
	recorded := len(d.taken)
	if d.leased != nil {
		recorded++
	}
	if len(d.posts) > recorded {
		w.violated("I3", "there are %d POSTs of %s, and %d attempts", len(d.posts), d.name, recorded)
	}
	if w.cfg.NoFaults && d.leased == nil && len(d.posts) != recorded {
		w.violated("I3", "there are %d POSTs of %s, and %d attempts, without a fault", len(d.posts), d.name, recorded)
	}
}
