package org.apache.omid.tso;

import com.google.inject.Binding;
import com.google.inject.matcher.AbstractMatcher;
import com.google.inject.matcher.Matcher;
import com.google.inject.spi.ProvisionListener;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;

/**
 * Keeps Omid's server on loopback: the server listens on every interface and has no setting for it.
 *
 * <p>Named as the lease module in the server's settings, it is the ordinary one without high availability; beside that
 * it puts a handler before the listening socket that changes the address when the server binds. The released classes
 * stay as they are. It lies in this package because Omid's settings may only name classes below org.apache.omid.
 */
public final class LoopbackModule extends VoidLeaseManagementModule {
    private static final Matcher<Binding<?>> CHANNEL_HANDLER = new AbstractMatcher<>() {
        @Override
        public boolean matches(Binding<?> binding) {
            return binding.getKey().getTypeLiteral().getRawType() == TSOChannelHandler.class;
        }
    };

    @Override
    protected void configure() {
        super.configure();
        bindListener(CHANNEL_HANDLER, new ProvisionListener() {
            @Override
            public <T> void onProvision(ProvisionInvocation<T> invocation) {
                bootstrapOf(invocation.provision()).handler(new BindsToLoopback());
            }
        });
    }

    private static ServerBootstrap bootstrapOf(Object channelHandler) {
        try {
            Field field = TSOChannelHandler.class.getDeclaredField("bootstrap");
            field.setAccessible(true);
            return (ServerBootstrap) field.get(channelHandler);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("this version of Omid does not keep its socket where 1.1.3 does", error);
        }
    }

    @ChannelHandler.Sharable
    private static final class BindsToLoopback extends ChannelOutboundHandlerAdapter {
        @Override
        public void bind(ChannelHandlerContext context, SocketAddress asked, ChannelPromise promise) {
            int port = ((InetSocketAddress) asked).getPort();
            context.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), promise);
        }
    }
}
