package main

import (
	"cmp"
	"time"

	"github.com/surehook/surehook/sender"
)

// orderRelaxed is what the API calls the order that settings call by no name.
const orderRelaxed = "relaxed"

func viewOrder(o sender.Order) string { return cmp.Or(string(o), orderRelaxed) }

func orderOf(name string) sender.Order {
	if name == orderRelaxed {
		return sender.OrderRelaxed
	}
	return sender.Order(name)
}

// Ordering has the fields of a subscription that say how its deliveries wait for each
// other, and in which version they get their data. A field that is left out stays as it is.
type Ordering struct {
	Order          string   `json:"order,omitempty" enum:"relaxed,object,latest" doc:"How the deliveries about one object wait for each other. relaxed: a version that failed is passed by later ones. object: a version waits until every earlier one of its object has ended. latest: a newer version ends the earlier ones that were not delivered, as superseded."`
	HoldTries      *integer `json:"hold_tries,omitempty" minimum:"0" maximum:"100" doc:"With the order object: after how many attempts a failing delivery is dead-lettered, so that it holds its object back no longer. 0: when its schedule ends."`
	HoldForSeconds *integer `json:"hold_for_seconds,omitempty" minimum:"0" maximum:"2592000" doc:"With the order object: the same by the time since its first attempt, up to 30 days. 0: when its schedule ends."`
	HoldDead       *bool    `json:"hold_dead,omitempty" doc:"With the order object: a dead letter goes on to hold back the later versions of its object, until it is redelivered, replayed or passed over."`
	PayloadVersion *string  `json:"payload_version,omitempty" pattern:"^[0-9]{4}-[0-9]{2}-[0-9]{2}$" patternDescription:"a date such as 2026-11-25" doc:"The date whose versions of the events' data it gets. It can only rise."`
}

// any tells whether something is to change.
func (c *Ordering) any() bool {
	return c.Order != "" || c.HoldTries != nil || c.HoldForSeconds != nil || c.HoldDead != nil || c.PayloadVersion != nil
}

// settings are those of a subscription after the change. The bounds of holding belong to the
// order object: they end with it, unless the change names them.
func (c *Ordering) settings(s sender.Settings) sender.Settings {
	if c.Order != "" {
		if s.Order = orderOf(c.Order); s.Order != sender.OrderObject {
			s.HoldTries, s.HoldFor, s.HoldDead = 0, 0, false
		}
	}
	if c.HoldTries != nil {
		s.HoldTries = int(*c.HoldTries)
	}
	if c.HoldForSeconds != nil {
		s.HoldFor = time.Duration(*c.HoldForSeconds) * time.Second
	}
	if c.HoldDead != nil {
		s.HoldDead = *c.HoldDead
	}
	if c.PayloadVersion != nil {
		s.PayloadVersion = *c.PayloadVersion
	}
	return s
}
