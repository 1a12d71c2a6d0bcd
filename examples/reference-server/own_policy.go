package main

import (
	"cmp"
	"time"

	"github.com/surehook/surehook/sender"
)

// goneFails is what the API calls the meaning of 410 that settings call by no name.
const goneFails = "failure"

func viewGone(g sender.Gone) string { return cmp.Or(string(g), goneFails) }

func viewDelays(delays []time.Duration) []int64 {
	seconds := make([]int64, len(delays))
	for i, d := range delays {
		seconds[i] = int64(d / time.Second)
	}
	return seconds
}

// Failing has the fields of a subscription that say what is done about its failures. A field
// that is left out stays as it is.
type Failing struct {
	RetryDelaysSeconds  []integer `json:"retry_delays_seconds,omitzero" nullable:"false" maxItems:"100" doc:"How long the attempts of a delivery that fails wait for each other: the last delay is repeated until the horizon. An empty list: as for all. Only where the server allows policies of their own, and within its bounds."`
	HorizonSeconds      *integer  `json:"horizon_seconds,omitempty" minimum:"0" maximum:"31536000" doc:"For how long after its first attempt a delivery is tried, within the same bounds. 0: as for all."`
	DisableAfterSeconds *integer  `json:"disable_after_seconds,omitempty" minimum:"0" maximum:"31536000" doc:"After how long without a success the subscription is disabled, within the same bounds. 0: as for all."`
	Gone                string    `json:"gone,omitempty" enum:"failure,stop" doc:"What the answer 410 Gone does. failure: it is one like any other. stop: the subscription is disabled at once; nothing is lost, and what is held is sent when it is active again."`
}

// fails tells whether something is to change.
func (c *Failing) fails() bool {
	return c.RetryDelaysSeconds != nil || c.HorizonSeconds != nil || c.DisableAfterSeconds != nil || c.Gone != ""
}

// failing are the settings after the change.
func (c *Failing) failing(s sender.Settings) sender.Settings {
	if c.RetryDelaysSeconds != nil {
		s.RetryDelays = nil
		for _, n := range c.RetryDelaysSeconds {
			s.RetryDelays = append(s.RetryDelays, seconds(n))
		}
	}
	if c.HorizonSeconds != nil {
		s.Horizon = seconds(*c.HorizonSeconds)
	}
	if c.DisableAfterSeconds != nil {
		s.DisableAfter = seconds(*c.DisableAfterSeconds)
	}
	if c.Gone != "" {
		if s.Gone = sender.Gone(c.Gone); c.Gone == goneFails {
			s.Gone = sender.GoneFails
		}
	}
	return s
}

// seconds does not overflow: a list's numbers have no bounds of their own.
func seconds(n integer) time.Duration {
	const year = 365 * 24 * 60 * 60
	return time.Duration(min(max(n, -year), year)) * time.Second
}
