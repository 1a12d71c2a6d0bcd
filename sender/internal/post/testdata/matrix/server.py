"""http.server's servers, each with the same answers, on the ports that config.json names."""
import http.server
import json
import ssl
import threading

tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain("server.pem", "server.key")
writing = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    def record(self, status):
        with writing, open("requests.log", "a") as file:
            file.write(f"{self.headers['Webhook-Id']} {status}\n")

    def answer(self, status, *parts, length=None, close=False):
        self.record(status)
        self.send_response(status)
        if length is not None:
            self.send_header("Content-Length", str(length))
        if close:
            self.send_header("Connection", "close")
        self.send_header("Keep-Alive", "timeout=60")
        self.end_headers()
        for part in parts:  # each with a write of its own
            self.wfile.write(part)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        match self.path:
            case "/length":
                self.answer(200, b"{}", length=2)
            case "/empty":
                self.answer(200, length=0)
            case "/none":
                self.answer(204)
            case "/untilclosed":
                self.answer(200, b"{}", close=True)
            case "/failing":
                self.answer(500, b"{}", length=2)
            # Two mistakes that are often made.
            case "/bodyafter204":
                self.answer(204, b"ok")
            case "/characters":
                text = "caf\u00e9"
                body = text.encode()
                self.answer(200, body[:-1], body[-1:], length=len(text))

    def log_message(self, *_):
        pass


class Handler11(Handler):
    protocol_version = "HTTP/1.1"


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class SecureServer(Server):
    def finish_request(self, request, client_address):
        with tls.wrap_socket(request, server_side=True) as secure:
            super().finish_request(secure, client_address)


with open("config.json") as file:
    config = json.load(file)
servers = [
    Server(("127.0.0.1", config["http10"]), Handler),
    Server(("127.0.0.1", config["http11"]), Handler11),
    SecureServer(("127.0.0.1", config["https10"]), Handler),
    SecureServer(("127.0.0.1", config["https11"]), Handler11),
]
for server in servers[1:]:
    threading.Thread(target=server.serve_forever).start()
servers[0].serve_forever()
