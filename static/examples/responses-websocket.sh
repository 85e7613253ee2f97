# curl has no dialogue over WebSocket; websocat has. One line in is one request.
echo '{"type":"response.create","model":"__MODEL__","input":"Why is the sea blue?"}' |
  websocat --no-close -H "Authorization: Bearer $MIZU_API_KEY" "$(echo __BASE_URL__ | sed 's/^http/ws/')/v1/responses"
