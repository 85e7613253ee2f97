# syntax=docker/dockerfile:1
# Mizu runs its TypeScript as it is: the first stage installs what production needs, the second holds that and the sources.

FROM node:26.10.0-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --no-audit --no-fund

FROM node:26.10.0-bookworm-slim
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=8080 \
    MIZU_CONFIG=/etc/mizu/mizu.config.json
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json mizu.schema.json README.md ARCHITECTURE.md ./
COPY static ./static
COPY src ./src
# What is compiled here need not be at each start.
RUN node src/main.ts --help > /dev/null
# The store: give it a volume, and "store": { "path": "/var/lib/mizu" } in the configuration.
RUN mkdir -p /var/lib/mizu /etc/mizu && chown node:node /var/lib/mizu
USER node
VOLUME /var/lib/mizu
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/readyz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "src/main.ts", "serve"]
