// Asks the libraries of other senders what they say of a request, and has them sign one.
//
// It reads a JSON object a line and answers with one a line:
//
//	{"do": "verify", "vendor": "stripe", "secret": "…", "headers": {"stripe-signature": "…"}, "body": "…"}
//	{"do": "sign", "vendor": "stripe", "secret": "…", "body": "…", "at": 1700000000}
//
// Questions about HTTP Message Signatures also have "algorithm", "url", "fields" and, to sign,
// "headers".
//
// The answer to the former is {"good": true} or {"good": false, "why": "…"}, and to the latter
// {"headers": {…}, "body": "…"}. A library that cannot be loaded is {"broken": "…"}.
import { createRequire, syncBuiltinESMExports } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(import.meta.url);

// Libraries that only read what a request says must not ask the network.
for (const name of ["net", "tls", "dns"]) {
  const refuse = () => {
    throw new Error("no library may use the network here");
  };
  const builtin = require(`node:${name}`);
  for (const call of ["connect", "createConnection", "lookup"]) {
    if (builtin[call]) builtin[call] = refuse;
  }
}
syncBuiltinESMExports();

const standard = async (r) => {
  const { Webhook } = require("standardwebhooks");
  return new Webhook(r.secret).verify(r.body, r.headers);
};

const verifiers = {
  "standard-webhooks": standard,
  adyen: (r) => {
    const { default: HmacValidator } = require("@adyen/api-library/lib/src/utils/hmacValidator");
    const items = JSON.parse(r.body).notificationItems;
    return items.every((item) => new HmacValidator().validateHMAC(item.NotificationRequestItem, r.secret));
  },
  braintree: async (r) => {
    const form = new URLSearchParams(r.body);
    const notification = await gateway(r.secret).webhookNotification.parse(form.get("bt_signature"), form.get("bt_payload"));
    return notification.kind === "check";
  },
  clerk: async (r) => {
    const { verifyWebhook } = require("@clerk/backend/webhooks");
    const request = new Request("https://example.com/hooks", { method: "POST", headers: r.headers, body: r.body });
    return verifyWebhook(request, { signingSecret: r.secret });
  },
  discord: async (r) => {
    const { verifyKey } = require("discord-interactions");
    return verifyKey(r.body, r.headers["x-signature-ed25519"], r.headers["x-signature-timestamp"], r.secret);
  },
  elevenlabs: async (r) => {
    const { ElevenLabsClient } = require("@elevenlabs/elevenlabs-js");
    return new ElevenLabsClient({ apiKey: "unused" }).webhooks.constructEvent(r.body, r.headers["elevenlabs-signature"], r.secret);
  },
  hookdeck: async (r) => {
    const { verifyWebhookSignature } = require("@hookdeck/sdk/webhooks/helpers");
    const answer = await verifyWebhookSignature({ headers: r.headers, rawBody: r.body, signingSecret: r.secret });
    return answer.isValidSignature;
  },
  linear: async (r) => {
    const { LinearWebhookClient } = await import("@linear/sdk/webhooks");
    return new LinearWebhookClient(r.secret).verify(Buffer.from(r.body), r.headers["linear-signature"], JSON.parse(r.body).webhookTimestamp);
  },
  mercadopago: (r) => {
    const { WebhookSignatureValidator } = require("mercadopago");
    WebhookSignatureValidator.validate({
      xSignature: r.headers["x-signature"],
      xRequestId: r.headers["x-request-id"],
      dataId: JSON.parse(r.body).data.id,
      secret: r.secret,
    });
    return true;
  },
  notion: async (r) => {
    const { verifyWebhookSignature } = require("@notionhq/client/build/src/webhooks");
    return verifyWebhookSignature({ body: r.body, signature: r.headers["x-notion-signature"], verificationToken: r.secret });
  },
  onfido: (r) => {
    const { WebhookEventVerifier } = require("@onfido/api");
    return new WebhookEventVerifier(r.secret).readPayload(r.body, r.headers["x-sha2-signature"]);
  },
  openai: async (r) => {
    const { default: OpenAI } = require("openai");
    await new OpenAI({ apiKey: "unused" }).webhooks.verifySignature(r.body, r.headers, r.secret);
    return true;
  },
  rfc9421: async (r) => {
    const { httpbis, createVerifier } = require("http-message-signatures");
    const verify = createVerifier(r.secret, r.algorithm);
    const keyLookup = async () => ({ id: "key", algs: [r.algorithm], verify });
    return httpbis.verifyMessage({ keyLookup, requiredFields: r.fields.filter((f) => !f.includes(";")), requiredParams: ["created", "keyid"] }, { method: "POST", url: r.url, headers: r.headers });
  },
  polar: (r) => {
    const { validateEvent } = require("@polar-sh/sdk/webhooks");
    try {
      validateEvent(r.body, r.headers, Buffer.from(r.secret.slice("whsec_".length), "base64").toString());
    } catch (error) {
      if (error.constructor.name !== "SDKValidationError") throw error; // right, and not an event that it knows
    }
    return true;
  },
  pusher: (r) => {
    const Pusher = require("pusher");
    const pusher = new Pusher({ appId: "1", key: r.headers["x-pusher-key"], secret: r.secret });
    return pusher.webhook({ headers: r.headers, rawBody: r.body }).isValid();
  },
  razorpay: (r) => require("razorpay").validateWebhookSignature(r.body, r.headers["x-razorpay-signature"], r.secret),
  replicate: async (r) => {
    const { validateWebhook } = require("replicate");
    return validateWebhook({ headers: r.headers, body: r.body }, r.secret);
  },
  resend: (r) => {
    const { Resend } = require("resend");
    const headers = { id: r.headers["svix-id"], timestamp: r.headers["svix-timestamp"], signature: r.headers["svix-signature"] };
    return new Resend("re_unused").webhooks.verify({ payload: r.body, headers, webhookSecret: r.secret });
  },
  sns: (r) => {
    const Validator = require("sns-validator");
    const https = require("node:https");
    const { EventEmitter } = require("node:events");
    const get = https.get;
    https.get = (_url, answer) => {
      const response = Object.assign(new EventEmitter(), { statusCode: 200 });
      answer(response);
      response.emit("data", Buffer.from(r.certificate));
      response.emit("end");
      return new EventEmitter();
    };
    return new Promise((resolve, reject) => {
      new Validator().validate(r.body, (error) => (error ? reject(error) : resolve(true)));
    }).finally(() => {
      https.get = get;
    });
  },
  stripe: (r) => {
    const Stripe = require("stripe");
    return Stripe.webhooks.constructEvent(r.body, r.headers["stripe-signature"], r.secret);
  },
  telnyx: async (r) => {
    const { TelnyxWebhook } = require("telnyx/lib/webhooks");
    await new TelnyxWebhook(r.secret).verify(r.body, r.headers);
    return true;
  },
  todoist: async (r) => {
    const { verifyWebhookSignature } = require("@doist/todoist-sdk");
    return verifyWebhookSignature({ rawBody: r.body, signature: r.headers["x-todoist-hmac-sha256"], clientSecret: r.secret });
  },
  webflow: async (r) => {
    const { WebflowClient } = require("webflow-api");
    return new WebflowClient({ accessToken: "unused" }).webhooks.verifySignature({ headers: r.headers, body: r.body, secret: r.secret });
  },
  workos: async (r) => {
    const { WorkOS } = require("@workos-inc/node");
    const webhooks = new WorkOS("sk_unused").webhooks;
    return webhooks.verifyHeader({ payload: JSON.parse(r.body), sigHeader: r.headers["workos-signature"], secret: r.secret });
  },
  x: (r) => require("twitter-autohook").validateSignature(r.headers, { consumer_secret: r.secret }, r.body),
  zoom: async (r) => {
    const { AwsLambdaReceiver, ChatbotClient } = require("@zoom/rivet/chatbot");
    const receiver = new AwsLambdaReceiver({ webhooksSecretToken: r.secret });
    const client = new ChatbotClient({ clientId: "a", clientSecret: "b", accountId: "c", webhooksSecretToken: r.secret, receiver });
    const handler = await client.start();
    const answer = await handler({ body: r.body, headers: r.headers, isBase64Encoded: false }, {});
    return answer.statusCode === 200;
  },
};

const gateway = (privateKey) => {
  const { BraintreeGateway, Environment } = require("braintree");
  return new BraintreeGateway({ environment: Environment.Sandbox, merchantId: "m", publicKey: "public", privateKey });
};

const signers = {
  adyen: (r) => {
    const { default: HmacValidator } = require("@adyen/api-library/lib/src/utils/hmacValidator");
    const body = JSON.parse(r.body);
    const item = body.notificationItems[0].NotificationRequestItem;
    item.additionalData = { hmacSignature: new HmacValidator().calculateHmac(item, r.secret) };
    return { headers: {}, body: JSON.stringify(body) };
  },
  braintree: (r) => {
    const { bt_signature, bt_payload } = gateway(r.secret).webhookTesting.sampleNotification("check", "7");
    return { headers: {}, body: new URLSearchParams({ bt_signature, bt_payload }).toString() };
  },
  notion: async (r) => {
    const { signWebhookPayload } = require("@notionhq/client/build/src/webhooks");
    return { headers: { "x-notion-signature": await signWebhookPayload({ body: r.body, verificationToken: r.secret }) }, body: r.body };
  },
  rfc9421: async (r) => {
    const { httpbis, createSigner } = require("http-message-signatures");
    const config = { key: createSigner(r.secret, r.algorithm, "key"), name: "sig1", fields: r.fields, paramValues: { created: new Date(r.at * 1000) } };
    const { headers } = await httpbis.signMessage(config, { method: "POST", url: r.url, headers: r.headers });
    return { headers, body: r.body };
  },
  "standard-webhooks": (r) => {
    const { Webhook } = require("standardwebhooks");
    const signature = new Webhook(r.secret).sign(r.id, new Date(r.at * 1000), r.body);
    return { headers: { "webhook-id": r.id, "webhook-timestamp": String(r.at), "webhook-signature": signature }, body: r.body };
  },
  stripe: (r) => {
    const Stripe = require("stripe");
    const header = Stripe.webhooks.generateTestHeaderString({ payload: r.body, secret: r.secret, timestamp: r.at });
    return { headers: { "stripe-signature": header }, body: r.body };
  },
  workos: async (r) => {
    const { WorkOS } = require("@workos-inc/node");
    const stamp = String(r.at * 1000);
    const signature = await new WorkOS("sk_unused").webhooks.computeSignature(stamp, JSON.parse(r.body), r.secret);
    return { headers: { "workos-signature": `t=${stamp}, v1=${signature}` }, body: r.body };
  },
  // The answer to X's question is made like its signatures.
  x: (r) => {
    const { response_token } = require("twitter-autohook").validateWebhook(r.body, { consumer_secret: r.secret });
    return { headers: { "x-twitter-webhooks-signature": response_token }, body: r.body };
  },
};

async function answer(r) {
  const known = r.do === "sign" ? signers : verifiers;
  if (!known[r.vendor]) return { broken: `no ${r.do} for ${r.vendor}` };
  try {
    const result = await known[r.vendor](r);
    return r.do === "sign" ? result : { good: Boolean(result) };
  } catch (error) {
    const missing = ["MODULE_NOT_FOUND", "ERR_MODULE_NOT_FOUND", "ERR_PACKAGE_PATH_NOT_EXPORTED"].includes(error.code);
    if (r.do === "sign" || missing || error instanceof TypeError || error instanceof ReferenceError) return { broken: String(error.stack) };
    return { good: false, why: String(error.message) };
  }
}

for (const call of ["log", "info", "warn", "error", "debug"]) console[call] = () => {}; // stdout is for answers
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(await answer(JSON.parse(line))) + "\n");
}
