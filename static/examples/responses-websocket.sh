# curl cannot hold a conversation over a WebSocket; websocat can. Each line that you send is one request.
echo '{"type":"response.create","model":"__MODEL__","input":"Why is the sea blue?"}' |
  websocat --no-close -H "Authorization: Bearer $MIZU_API_KEY" "$(echo __BASE_URL__ | sed 's/^http/ws/')/v1/responses"
