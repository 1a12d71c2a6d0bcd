package rules

// Patterns lists what a subscription can ask for to get an event type: for "a.b.c" the
// type itself, "a.b.*", "a.*" and "*". A store that keeps each pattern in an indexed row
// looks these up to find the subscriptions that match. The cost does not depend on how
// many do not match.
func Patterns(eventType string) []string {
	patterns := []string{eventType}
	for i := len(eventType) - 1; i > 0; i-- {
		if eventType[i] == '.' {
			patterns = append(patterns, eventType[:i+1]+"*")
		}
	}
	return append(patterns, "*")
}
