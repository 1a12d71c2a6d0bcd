//go:build !race

package receiver_test

const raceEnabled = false
