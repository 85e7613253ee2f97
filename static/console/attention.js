/** What an operator should look at now: health, circuits, Channels, wallets, videos of unknown outcome, and what fails. */
import { health } from './api.js';
import { address, count, h, link, one, plainMoney, share, tag } from './dom.js';
import { nanosOf } from './money.js';

/** Of a hundred requests of the last hour, and of at least so many. */
const ERROR_SHARE = 0.05;
const FEWEST = 20;
const MOST_EACH = 10;

export const view = {
  everyMs: 15_000,

  async load({ get }) {
    const [found, channels, models, unknown, accounts, hour, check] = await Promise.all([
      health(),
      get('channels'),
      get('models'),
      get('videos', { state: 'unknown', limit: 100 }),
      get('accounts', { limit: 1000 }),
      get('overview', { from: '1h', by: 'channel' }),
      get('config/check'),
    ]);
    return [
      ...ofHealth(found),
      ...channels.data.flatMap(ofChannel),
      ...models.data.flatMap(ofModel),
      ...hour.data.flatMap(ofErrors),
      ...accounts.data.filter(isEmpty).slice(0, MOST_EACH).map(ofAccount),
      ...(unknown.data.length === 0
        ? []
        : [
            alert(
              'bad',
              'unknown video',
              `${count(unknown.data.length)} video tasks have an outcome that nobody knows; their money is set aside.`,
              address('videos', { state: 'unknown' }),
            ),
          ]),
      ...(check.valid
        ? []
        : [
            alert(
              'bad',
              'configuration',
              `The file has ${count(check.problems?.length ?? 1)} mistakes: the gateway goes on with the old one, and would not start with this one.`,
              '#/gateway',
            ),
          ]),
    ];
  },

  draw(alerts) {
    return [
      h('h1', {}, 'Attention'),
      alerts.length === 0
        ? h(
            'p',
            { class: 'empty' },
            'Nothing needs attention: the store is well, every Channel is in service with its circuits closed, and no wallet is empty.',
          )
        : h(
            'ul',
            { class: 'alerts' },
            alerts.map(({ kind, what, text, href }) =>
              h(
                'li',
                {},
                tag(what, kind),
                h('span', {}, text),
                link(href, 'Look', h('span', { class: 'sr' }, ` at ${what}: ${text}`)),
              ),
            ),
          ),
      h(
        'p',
        { class: 'note' },
        'Alerts that should wake someone are Prometheus’: packaging/ has rules for the metrics of this port.',
      ),
    ];
  },
};

const alert = (kind, what, text, href) => ({ kind, what, text, href });

function ofHealth(found) {
  if (found === undefined) return [alert('bad', 'health', 'The gateway does not say how it is.', '#/gateway')];
  return found.status === 'ok'
    ? []
    : [alert('bad', 'health', `Not ready: ${found.reasons?.join(', ') ?? found.status}.`, '#/gateway')];
}

function ofChannel({ id, state, outOfService, circuits }) {
  const open = circuits.filter((circuit) => circuit.state !== 'closed');
  return [
    ...(state === 'out_of_service'
      ? [
          alert(
            '',
            'out of service',
            `${id}, by ${outOfService?.by ?? 'an operator'}${outOfService?.reason === undefined ? '' : `: ${outOfService.reason}`}.`,
            '#/channels',
          ),
        ]
      : []),
    ...(open.length === 0
      ? []
      : [
          alert(
            'bad',
            'circuit',
            `${id}: ${open.map(({ model, state: own }) => `${model === undefined ? '' : `${model} `}${own}`).join(', ')}.`,
            '#/channels',
          ),
        ]),
  ];
}

/** A model that is offered, and that nothing serves. */
function ofModel({ id, price, channels }) {
  if (price === undefined || channels.some(({ state }) => state === 'in_service')) return [];
  return [alert('bad', 'no channel', `${id} is offered, and no Channel in service has it.`, '#/prices')];
}

function ofErrors({ channel, requests, errors }) {
  if (channel === undefined || channel === '' || requests < FEWEST || errors < requests * ERROR_SHARE) return [];
  return [
    alert(
      'bad',
      'errors',
      `${channel}: ${share(errors, requests)} of ${count(requests)} requests failed since the last full hour.`,
      address('exchanges', { channel, status: 'error', since: '1h' }),
    ),
  ];
}

const isEmpty = ({ unlimited, disabled, balance }) => !unlimited && !disabled && nanosOf(balance) <= 0n;
const ofAccount = ({ id, name, balance }) => alert('', 'empty wallet', `${name}: ${plainMoney(balance)}.`, one('account', id));
