package simulation

// Add sums up the reports of several runs. Seed and Hash stay.
func (r *Report) Add(other Report) {
	r.Events += other.Events
	r.Deliveries += other.Deliveries
	r.Attempts += other.Attempts
	r.Steps += other.Steps
	r.Virtual += other.Virtual
	if r.Counts == nil {
		r.Counts = map[string]int{}
	}
	for what, n := range other.Counts {
		r.Counts[what] += n
	}
}

// Happens lists the names in Report.Counts, on databases without connections. In enough
// runs all of them happen. A caller that runs many seeds should check this.
func Happens() []string {
	all := []string{
		"disabled by failing", "disabled by 410", "own schedule", "result lost", "interrupted", "taken over", "own network", "spared", "not spared again", "Retry-After", "forgotten", "beside a large event",
		"claimed in a line", "claimed of the latest", "superseded after an attempt", "newest of an object",
		"order changed in flight", "more superseded than one step ends", "passed over", "passed over by force",
		"posts in an older version", "made without its filter", "left out by a filter", "left out by a filter over the older version",
		"end delivered", "end dead_lettered", "end cancelled", "end superseded", ends[effected], ends[stale], ends[deadLettered],
	}
	for k, o := range often {
		if kind(k) < brokenLink {
			all = append(all, o.name)
		}
	}
	return all
}
