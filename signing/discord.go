package signing

// Discord returns the scheme of Discord's interactions and webhook events:
//
//	X-Signature-Timestamp: 1700000000
//	X-Signature-Ed25519: 3d0f…
//
// where the signature is the hex Ed25519 signature of the timestamp and the body with
// nothing between them. The key is the application's public key: read it with
// [ParseHexPublicKey]. It can verify, but it cannot sign.
//
// Replay defence: [TimeWindow]: the window is ours, since Discord asks for none. It
// also keeps the text from being split in another way, because every time inside it
// has ten digits. An interaction's id is in the body; its type is a number. Webhook
// events have no id: deduplication goes by the body. Discord sends requests with wrong
// signatures on purpose and expects 401.
//
// Source: https://docs.discord.com/developers/interactions/overview#validating-security-request-headers.
// Discord publishes no fixed value; what this signs is verified by discordgo, which
// Discord lists among the libraries of its community.
func Discord() *Described {
	return describe(Description{
		Name:            "discord",
		SignatureHeader: "X-Signature-Ed25519",
		Algorithm:       Ed25519,
		TimestampHeader: "X-Signature-Timestamp",
		Signed:          "{timestamp}{body}",
		IDField:         "id",
		TypeField:       "type",
	})
}
